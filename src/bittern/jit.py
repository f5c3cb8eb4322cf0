"""The one place that compiles with Numba.

Three decorators, so that importing Bittern compiles nothing and memory-mapped arrays work:

- ``@inline`` marks a small function that kernels call. It is compiled into its callers.
- ``@apart`` marks a longer one, which is compiled once for all that call it in a kernel.
- ``@kernel(result, argument, ...)`` marks an entry point. It is compiled for exactly that
  signature when it is first called (or loaded from the cache on disk), releases the GIL, and is
  never specialised again. Read-only argument types accept writable arrays too, and they are
  what a memory-mapped snapshot needs.

``prefetch(array, i)`` inside a kernel asks for the cache line of an item that is read some steps
later. It never faults, so that ``i`` may lie anywhere. ``popcount(word)`` counts the set bits.
``choose(condition, a, b)`` is no branch. ``folded_product(a, b)`` is what hashes are made of.
``vectors.py`` has one more.
``read_at(file, address, count, offset)`` reads bytes of an open file into memory (``pread``).
``array_at(address, shape, np.int32)`` is the array that lies at an address, for a kernel that is
called so often that taking arrays from Python would cost more than what it does with them.

Type names: a scalar is ``i4 i8 f8 u1 u8 b1``; a one-dimensional C array adds ``r`` (read-only)
or ``w`` (writable); two dimensions add ``2``: ``i4r2``. ``text`` is Python's ``bytes``.

Arrays that belong together are passed as one NamedTuple, into a kernel and on to what it calls, and
functions may make small ones. In ``inline`` functions, which count no references, that costs
between -10 % (documents that a history takes) and +10 % (its lookups, through five calls): measure.
A kernel's own loops look fields up first. A call from Python costs 0.1 microseconds for each array,
and 0.5 for each NamedTuple around them. The fields of a tuple are not converted as arrays are:
``frozen`` makes them read-only.

A compiled kernel is kept on disk, or comes from another process: ``kept.py``. ``first_use.py`` is
asked before one is compiled that is not there.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from bittern import first_use
from bittern.kept import cached, code_on_disk, kept_in

i4, i8, f8, u1, u8, b1 = (
    types.int32,
    types.int64,
    types.float64,
    types.uint8,
    types.uint64,
    types.boolean,
)
void = types.void
text = types.Bytes(u1, 1, "C")


def _array(item: Any, dimensions: int, *, readonly: bool) -> Any:
    return types.Array(item, dimensions, "C", readonly=readonly)


i4r, i8r, f8r, u1r, u8r, b1r = (_array(t, 1, readonly=True) for t in (i4, i8, f8, u1, u8, b1))
i4w, i8w, f8w, u1w, u8w, b1w = (_array(t, 1, readonly=False) for t in (i4, i8, f8, u1, u8, b1))
i4r2, i4w2 = _array(i4, 2, readonly=True), _array(i4, 2, readonly=False)
i8r2, i8w2 = _array(i8, 2, readonly=True), _array(i8, 2, readonly=False)
u1r2 = _array(u1, 2, readonly=True)


def tuple_type(cls: type[NamedTuple], *fields: Any) -> Any:
    """The Numba type of a NamedTuple of arrays, to stand in a kernel's signature."""
    return types.BaseTuple.from_types(fields, cls)


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only plain view, mapped or not: inside a tuple, kernels take no other."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def frozen(arrays: Arrays) -> Arrays:
    """The NamedTuple with read-only views of its arrays: Numba converts arrays, not tuples."""
    fields: list[Any] = []
    for field in arrays:
        if isinstance(field, tuple):
            fields.append(frozen(field))
        elif isinstance(field, int):
            fields.append(field)
        else:
            fields.append(read_only(field))
    return type(arrays)(*fields)


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call, without what only a call from Python needs.

    Numba makes two wrappers for each function, which take a third of the time to compile a kernel
    and are of no use inside it. A call from Python (a test's) compiles the function by itself.
    Nor is it compiled again for arguments that are constants: LLVM sees those in its caller.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What Numba asks for where a kernel calls it."""
        plain = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template([types.unliteral(kind) for kind in args], plain)

    def __call__(self, *arguments: Any) -> Any:
        return _alone(self.py_func)(*arguments)


@functools.cache
def _alone(function: Callable[..., Any]) -> Any:
    return numba.njit(nogil=True, error_model="numpy")(function)


def _inner(function: Callable[..., Any], **options: bool) -> Any:
    made = numba.njit(
        nogil=True,
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)
    if made is not function:  # else under NUMBA_DISABLE_JIT
        made.__class__ = _Inner
    return made


def inline(function: Callable[..., Any]) -> Any:
    """A function that kernels call; compiled into its callers.

    It neither allocates nor returns arrays: without reference counts, and forced into its caller,
    a call costs nothing; with them it costs several times what a short function does.
    """
    return _inner(function, forceinline=True)


def apart(function: Callable[..., Any]) -> Any:
    """A longer function that kernels call; like ``inline``, but not copied into each caller."""
    return _inner(function)


def _emit_prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    address = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
    # To read (0), to be kept in all caches (3), as data (1).
    builder.call(function, [address, *(ir.Constant(number, n) for n in (0, 3, 1))])
    return context.get_dummy_value()


@intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``; in two dimensions, count items row by row.

    Where each step of a loop waits for memory at a place that is known steps before, asking early
    turns one wait after another into many at once. The distance is some tens of steps: measure.
    """
    return types.void(array, index), _emit_prefetch


def _emit_popcount(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.ctpop(arguments[0])


@intrinsic
def popcount(_context: Any, word: Any) -> Any:
    """How many bits of an unsigned word are set."""
    return word(word), _emit_popcount


def _emit_choose(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    chosen = builder.select(*arguments)
    chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
    return chosen


@intrinsic
def choose(_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """``a if condition else b`` without a branch, for what no processor predicts: a search step."""
    return a(condition, a, b), _emit_choose


def _emit_folded_product(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    whole, half = ir.IntType(128), ir.IntType(64)
    product = builder.mul(*(builder.zext(word, whole) for word in arguments))
    upper = builder.trunc(builder.lshr(product, ir.Constant(whole, 64)), half)
    return builder.xor(builder.trunc(product, half), upper)


@intrinsic
def folded_product(_context: Any, _a: Any, _b: Any) -> Any:
    """The product of two words of 64 bits, its upper half XORed to its lower one."""
    return u8(u8, u8), _emit_folded_product


def _folded_product(a: Any, b: Any) -> Any:
    product = int(a) * int(b)
    return np.uint64(product >> 64 ^ product & (1 << 64) - 1)


def _emit_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    made = context.make_array(signature.return_type)(context, builder)
    item = context.get_data_type(signature.return_type.dtype)
    size = context.get_constant(types.intp, context.get_abi_sizeof(item))
    lengths = cgutils.unpack_tuple(builder, arguments[1])
    strides, n_items = [size], lengths[0]
    for length in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], length))
        n_items = builder.mul(n_items, length)
    made.data = builder.inttoptr(arguments[0], item.as_pointer())
    made.shape, made.strides = (cgutils.pack_array(builder, each) for each in (lengths, strides))
    made.itemsize, made.nitems = size, n_items
    made.meminfo, made.parent = (  # no reference is counted: the caller keeps the memory
        cgutils.get_null_value(each.type) for each in (made.meminfo, made.parent)
    )
    return made._getvalue()  # noqa: SLF001


@intrinsic
def array_at(_context: Any, _address: Any, shape: Any, item: Any) -> Any:
    """The C array of this shape and type of items that lies at an address."""
    return _array(item.dtype, len(shape), readonly=False)(i8, shape, item), _emit_array


def _array_at(address: int, shape: tuple[int, ...], item: Any) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(item).itemsize
    memory = (ctypes.c_uint8 * size).from_address(int(address))
    return np.frombuffer(memory, dtype=item).reshape(shape)


read_at = types.ExternalFunction("pread", i8(i4, u8, u8, i8))
"""The system's ``pread``: how many bytes were read (0 at the end of the file), or -1."""


def _read_at(file: int, address: int, count: int, offset: int) -> int:
    try:
        data = os.pread(file, int(count), int(offset))
    except OSError:
        return -1
    ctypes.memmove(int(address), data, len(data))
    return len(data)


#: False under NUMBA_DISABLE_JIT, where kernels are plain Python.
IS_COMPILING = not numba.config.DISABLE_JIT
if not IS_COMPILING:
    read_at = _read_at
    array_at = _array_at
    prefetch = lambda array, index: None  # noqa: ARG005, E731
    popcount = lambda word: np.uint64(int(word).bit_count())  # noqa: E731
    choose = lambda condition, a, b: a if condition else b  # noqa: E731
    folded_product = _folded_product


_compiling = threading.RLock()
# A process is not forked in the middle: its child would wait for a thread that it does not have.
os.register_at_fork(
    before=_compiling.acquire,
    after_in_parent=_compiling.release,
    after_in_child=_compiling.release,
)


class Kernel:
    """An entry point: compiled on its first call, for one signature."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._signature = signature
        self._dispatcher: Any = None
        self._is_absent = False
        self._call: Callable[..., Any] = self._first_call

    def _first_call(self, *arguments: Any) -> Any:
        self.prepare()
        return self._call(*arguments)

    def prepare(self) -> Callable[..., Any]:
        """Compile, or load from the cache, without running; returns what runs it, a step less."""
        with _compiling:
            if self._dispatcher is not None:
                return self._call
            dispatcher = cached(self.__wrapped__)
            if hasattr(dispatcher, "compile"):  # absent under NUMBA_DISABLE_JIT
                self._watch(dispatcher._cache)  # noqa: SLF001
                dispatcher.compile(self._signature)
                dispatcher.disable_compile()
            self._call = dispatcher
            self._dispatcher = dispatcher
            return self._call

    def load(self) -> bool:
        """Load what some process has compiled before; False, now and later, if none has.

        For what is worth having, but not worth waiting for.
        """
        if self._dispatcher is None and not self._is_absent:
            with _compiling, global_compiler_lock:
                dispatcher = cached(self.__wrapped__)
                kept = not hasattr(dispatcher, "compile") or dispatcher._cache.load_overload(  # noqa: SLF001
                    self._signature, dispatcher.targetctx
                )
                if kept:
                    self.prepare()
                self._is_absent = not kept
        return self._dispatcher is not None

    def packed(self) -> tuple[bytes, bytes] | None:
        """What spares another process from compiling it: a key and code, if it is on disk."""
        with _compiling, global_compiler_lock:
            return code_on_disk(self.__wrapped__, self._signature)

    def _watch(self, cache: Any) -> None:
        """Where the kernel is not on disk, say so and let others help."""
        load = cache.load_overload
        name = f"{self.__wrapped__.__module__}:{self.__name__}"

        def load_or_wait(signature: Any, context: Any) -> Any:
            found = load(signature, context)
            if found is None:
                first_use.tell_once(cache.cache_path)
                if first_use.compile_together(name, kept_in):
                    found = load(signature, context)
            return found

        cache.load_overload = load_or_wait

    def __call__(self, *arguments: Any) -> Any:
        """Run; the first call compiles."""
        return self._call(*arguments)


def kernel(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare an entry point with its exact signature."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, result(*arguments))

    return decorate
