"""What belongs to one process and to its object: a copy would put other data on its noise, or spend a budget twice."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from sordino.errors import ForkError

__all__ = ["Uncopied"]


class Uncopied:
    """Refuses to be copied and pickled, in words of its own."""

    _no_copy: ClassVar[str] = (
        "a stream cannot be copied or pickled: two copies would put different items on the same noise"
    )

    def __copy__(self) -> NoReturn:
        raise ForkError(self._no_copy)

    def __deepcopy__(self, _memo: object) -> NoReturn:
        raise ForkError(self._no_copy)

    def __reduce_ex__(self, _protocol: object) -> Any:
        raise ForkError(self._no_copy)
