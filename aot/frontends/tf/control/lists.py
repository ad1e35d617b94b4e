"""Operations on lists of tensors (TensorList) and arrays of tensors (TensorArrayV3; the flow is the list)."""

from __future__ import annotations

from aot.frontends.tf.control.tensor_list import TensorList, build_vector, element_shape, filled, length, zeros
from aot.frontends.tf.registry import Outputs, TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

ENDLESS = 2**63 - 1


def _dtype(node: TfNode, name: str = "element_dtype") -> DType:
    """Return the type of elements; lists of lists are refused."""
    return node.dtype(name)


@tf("EmptyTensorList")
def empty(node: TfNode, shape: OutPort, limit: OutPort | None = None) -> Outputs:
    return Outputs([_known(node, TensorList(_dtype(node), element_shape(node, shape), node.scalar(0)))])


@tf("TensorListReserve")
def reserve(node: TfNode, shape: OutPort, count: OutPort) -> Outputs:
    return Outputs([_known(node, TensorList(_dtype(node), element_shape(node, shape), node.single(count)))])


def _known(node: TfNode, xs: TensorList) -> TensorList:
    """Return the list with its data where the shape of its elements is known."""
    known = xs.shape is not None and all(d >= 0 for d in xs.shape)
    return filled(node, xs) if known else xs


@tf("TensorListFromTensor")
def from_tensor(node: TfNode, x: OutPort, shape: OutPort | None = None) -> Outputs:
    return Outputs([TensorList(x.type.dtype, data=x)])


@tf("TensorListSetItem")
def set_item(node: TfNode, xs: TensorList, index: OutPort, item: OutPort) -> Outputs:
    return Outputs([_with_item(node, xs, index, item, node.flag("resize_if_index_out_of_bounds"))])


def _with_item(node: TfNode, xs: TensorList, index: OutPort, item: OutPort, grows: bool) -> TensorList:
    row = node.build.Unsqueeze(item, node.list([0]))
    if xs.data is None:
        dims = [node.dims(item, [a]) for a in range(item.type.rank)]
        xs = zeros(node, xs, dims)
    data = xs.data
    assert data is not None
    at = build_vector(node.build, node.single(index))
    if grows:
        data = _grown(node, data, at)
    if data.shape[0] == 1 and not grows:
        return xs.with_data(row)
    return xs.with_data(node.build.ScatterUpdate(data, at, row, node.scalar(0)))


def _grown(node: TfNode, data: OutPort, at: OutPort) -> OutPort:
    """Data with as many rows as an index needs."""
    build = node.build
    more = build.Maximum(build.Subtract(build.Add(at, 1), node.dims(data, [0])), 0)
    rest = [node.dims(data, [a]) for a in range(1, data.type.rank)]
    zero = build.const(False if data.type.dtype is DType.BOOL else 0, data.type.dtype)
    return build.Concat(data, build.Broadcast(zero, build.Concat(more, *rest, axis=0)), axis=0)


@tf("TensorListGetItem")
def get_item(node: TfNode, xs: TensorList, index: OutPort, shape: OutPort | None = None) -> OutPort:
    xs = _told(node, xs, shape)
    assert xs.data is not None
    return node.build.Gather(xs.data, node.single(index), node.scalar(0))


def _told(node: TfNode, xs: TensorList, shape: OutPort | None) -> TensorList:
    """Return the list with data, from the shape of its elements where a consumer's input gives it."""
    told = element_shape(node, shape)
    return filled(node, xs if told is None or xs.data is not None else TensorList(xs.dtype, told, xs.count))


@tf("TensorListStack")
def stack(node: TfNode, xs: TensorList, shape: OutPort | None = None) -> OutPort:
    data = _told(node, xs, shape).data
    assert data is not None
    return data


@tf("TensorListLength")
def list_length(node: TfNode, xs: TensorList) -> OutPort:
    return node.cast(length(node, xs), DType.I32)


@tf("TensorListElementShape")
def list_element_shape(node: TfNode, xs: TensorList) -> OutPort:
    data = filled(node, xs).data
    assert data is not None
    return node.cast(node.dims(data, range(1, data.type.rank)), node.dtype("shape_type"))


@tf("TensorListPushBack")
def push_back(node: TfNode, xs: TensorList, item: OutPort) -> Outputs:
    row = node.build.Unsqueeze(item, node.list([0]))
    empty_list = xs.data is None or xs.data.shape[0] == 0
    if xs.data is None and not _is_empty(xs):
        raise UnsupportedError(f"{node.kind}: an element must be added behind elements that are known, got others")
    data = row if empty_list or xs.data is None else node.build.Concat(xs.data, row, axis=0)
    return Outputs([xs.with_data(data)])


def _is_empty(xs: TensorList) -> bool:
    value = None if xs.count is None else xs.count.value
    return value is not None and value.dtype != object and not value.any()


@tf("TensorListPopBack")
def pop_back(node: TfNode, xs: TensorList, shape: OutPort | None = None) -> Outputs:
    data = _told(node, xs, shape).data
    assert data is not None
    build, zero = node.build, node.list([0])
    rest = build.Slice(data, zero, node.list([-1]), node.list([1]), zero)
    return Outputs([xs.with_data(rest), build.Gather(data, node.scalar(-1), node.scalar(0))])


@tf("TensorListResize")
def resize(node: TfNode, xs: TensorList, size: OutPort) -> Outputs:
    count = build_vector(node.build, node.single(size))
    if xs.data is None:
        return Outputs([TensorList(xs.dtype, xs.shape, node.single(size))])
    build, data = node.build, _grown(node, xs.data, node.build.Subtract(count, 1))
    zero = node.list([0])
    return Outputs([xs.with_data(build.Slice(data, zero, count, node.list([1]), zero))])


@tf("TensorListConcat", "TensorListConcatV2")
def concat(node: TfNode, xs: TensorList, shape: OutPort | None = None, leading: OutPort | None = None) -> Outputs:
    data = _told(node, xs, None).data
    assert data is not None
    return _concatenated(node, data)


def _concatenated(node: TfNode, data: OutPort) -> Outputs:
    """Concatenate the elements; also return their lengths, which are equal."""
    if data.type.rank < 2:
        raise UnsupportedError(f"{node.kind}: elements must have an axis, got scalars")
    build = node.build
    rest = [node.dims(data, [a]) for a in range(2, data.type.rank)]
    joined = build.Reshape(data, build.Concat(node.list([-1]), *rest, axis=0) if rest else node.list([-1]))
    return Outputs([joined, build.Broadcast(node.size(data, 1), node.dims(data, [0]))])


@tf("TensorListSplit")
def split(node: TfNode, x: OutPort, shape: OutPort, lengths: OutPort) -> Outputs:
    ints = node.ints(lengths, "lengths")
    node.refuse(len(set(ints)) != 1, "the elements of a list have one shape")
    dims = [node.dims(x, [a]) for a in range(1, x.type.rank)]
    data = node.build.Reshape(x, node.build.Concat(node.list([len(ints), ints[0]]), *dims, axis=0))
    return Outputs([TensorList(x.type.dtype, data=data)])


@tf("TensorListGather")
def gather(node: TfNode, xs: TensorList, indices: OutPort, shape: OutPort | None = None) -> OutPort:
    data = _told(node, xs, shape).data
    assert data is not None
    return node.build.Gather(data, indices, node.scalar(0))


@tf("TensorListScatter", "TensorListScatterV2")
def scatter(node: TfNode, x: OutPort, indices: OutPort, shape: OutPort, count: OutPort | None = None) -> Outputs:
    if count is None or (count.value is not None and (count.value < 0).any()):
        count = node.build.Add(node.build.ReduceMax(node.cast(indices, DType.I64), node.list([0])), 1)
    xs = zeros(node, TensorList(x.type.dtype, None, count), [node.dims(x, [a]) for a in range(1, x.type.rank)])
    return Outputs([_scattered(node, xs, indices, x)])


@tf("TensorListScatterIntoExistingList")
def scatter_into(node: TfNode, xs: TensorList, x: OutPort, indices: OutPort) -> Outputs:
    if xs.data is None:
        xs = zeros(node, xs, [node.dims(x, [a]) for a in range(1, x.type.rank)])
    return Outputs([_scattered(node, xs, indices, x)])


def _scattered(node: TfNode, xs: TensorList, indices: OutPort, x: OutPort) -> TensorList:
    """Return the list with rows of `x` at places; a list that is set from its begin to its end is `x` itself."""
    assert xs.data is not None
    count, known = xs.data.shape[0], indices.value
    if (
        known is not None
        and known.dtype != object
        and list(known.reshape(-1)) == list(range(len(known))) == [*range(count if isinstance(count, int) else -1)]
    ):
        return xs.with_data(x)
    return xs.with_data(node.build.ScatterUpdate(xs.data, node.cast(indices, DType.I64), x, node.scalar(0)))


# ---- arrays of TensorFlow 1: the handle says the type, the flow is the list


@tf("TensorArrayV3")
def array(node: TfNode, size: OutPort) -> Outputs:
    dtype, shape = _dtype(node, "dtype"), node.shape("element_shape")
    xs = TensorList(dtype, shape, node.single(size))
    return Outputs([TensorList(dtype, shape), _known(node, xs)])


@tf("TensorArrayWriteV3")
def array_write(node: TfNode, handle: TensorList, index: OutPort, item: OutPort, flow: TensorList) -> Outputs:
    return Outputs([_with_item(node, flow, index, item, False)])


@tf("TensorArrayReadV3")
def array_read(node: TfNode, handle: TensorList, index: OutPort, flow: TensorList) -> OutPort:
    return get_item(node, flow, index)


@tf("TensorArrayGatherV3")
def array_gather(node: TfNode, handle: TensorList, indices: OutPort, flow: TensorList) -> OutPort:
    shape = node.shape("element_shape")
    xs = flow if flow.data is not None or shape is None else TensorList(flow.dtype, shape, flow.count)
    data = filled(node, xs).data
    assert data is not None
    return data if _is_all(node, indices, data) else node.build.Gather(data, indices, node.scalar(0))


def _is_all(node: TfNode, indices: OutPort, data: OutPort) -> bool:
    """True if indices are known to be all places, in order."""
    value, count = indices.value, data.shape[0]
    is_known = value is not None and value.dtype != object and isinstance(count, int)
    return is_known and value is not None and value.reshape(-1).tolist() == list(range(int(str(count))))


@tf("TensorArrayScatterV3")
def array_scatter(node: TfNode, handle: TensorList, indices: OutPort, x: OutPort, flow: TensorList) -> Outputs:
    if _is_all(node, indices, x) or _is_range(indices, x):
        return Outputs([TensorList(flow.dtype, flow.shape, data=x)])
    return scatter_into(node, flow, x, indices)


def _is_range(indices: OutPort, x: OutPort) -> bool:
    """True if indices are 0 to the number of rows, which is not known."""
    node = indices.node
    if node.type != "Range" or indices.shape != x.shape[:1]:
        return False
    start, step = node.constant(0), node.constant(2)
    return start is not None and not start.any() and step is not None and bool((step == 1).all())


@tf("TensorArraySizeV3")
def array_size(node: TfNode, handle: TensorList, flow: TensorList) -> OutPort:
    return node.cast(length(node, flow), DType.I32)


@tf("TensorArrayConcatV3")
def array_concat(node: TfNode, handle: TensorList, flow: TensorList) -> Outputs:
    data = filled(node, flow).data
    assert data is not None
    return _concatenated(node, data)


@tf("TensorArraySplitV3")
def array_split(node: TfNode, handle: TensorList, x: OutPort, lengths: OutPort, flow: TensorList) -> Outputs:
    return split(node, x, lengths, lengths)
