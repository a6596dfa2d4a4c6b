"""What belongs to one process and to its object: copies would put different data on the same noise."""

from __future__ import annotations

from typing import Any, NoReturn

from sordino.errors import ForkError

__all__ = ["Uncopied"]


class Uncopied:
    """Refuses to be copied and pickled."""

    def __copy__(self) -> NoReturn:
        raise ForkError("a stream cannot be copied: two copies would put different items on the same noise")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, _protocol: object) -> Any:
        raise ForkError("a stream cannot be pickled")
