"""A signal at any place of a call, as the interpreter would let it in.

Signals are looked for after a call, at the start of a function, at a jump backwards. Here an exception is raised at one
of these places, in the code of the library alone.
"""

import dis
import gc
import sys

import sordino as so

PLACES = ("CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD")
LIBRARY = str(so.__path__[0])


class Interrupted(BaseException):
    """What a handler raises."""


def within(call, at, handler):
    """Call, with a handler run at the `at`-th place where a signal may come in; return whether there were so many.

    No garbage is collected meanwhile: a finalizer of an object that another test left would be the place.
    """
    seen, previous, done = 0, {}, False

    def trace(frame, event, _argument):
        nonlocal seen, done
        # Not in the store: behind a `return` inside `with`, the place after a call is behind the end of the block for
        # an exception of a trace, which it is not for a signal: the store's lock would stay held.
        if not frame.f_code.co_filename.startswith(LIBRARY) or frame.f_code.co_filename.endswith("storage/steps.py"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not done:
            before = previous.get(frame)
            if before in PLACES:
                seen += 1
                if seen == at:
                    done = True
                    sys.settrace(None)
                    handler()
            previous[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return trace

    collecting = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
        if collecting:
            gc.enable()
    return done


def interrupted(call, at):
    """Call, raising at the `at`-th place where a signal may come in; return whether there were so many."""

    def handler():
        raise Interrupted

    try:
        return within(call, at, handler)
    except Interrupted:
        return True
