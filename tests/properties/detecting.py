"""Boxes: suppression, proposals, regions of interest, detection; speech and colour."""

from __future__ import annotations

import numpy as np

from aot.ir.types import Array
from aot.opset.control.random_numbers import Alignment, Multinomial, RandomUniform
from aot.opset.detection.deformable_pooling import DeformablePSROIPooling
from aot.opset.detection.detection_output import Code, DetectionOutput, DetectionOutput_1
from aot.opset.detection.detectron import (
    ExperimentalDetectronDetectionOutput,
    ExperimentalDetectronROIFeatureExtractor,
    ExperimentalDetectronTopKROIs,
)
from aot.opset.detection.prior_boxes import (
    ExperimentalDetectronPriorGridGenerator,
    PriorBox,
    PriorBox_1,
    PriorBoxClustered,
)
from aot.opset.detection.proposals.generate_proposals import GenerateProposals
from aot.opset.detection.proposals.proposal import Proposal, Proposal_1
from aot.opset.detection.proposals.single_image import ExperimentalDetectronGenerateProposalsSingleImage
from aot.opset.detection.region import RegionYolo
from aot.opset.detection.roi_align import Aligned, Pooling, ROIAlign, ROIAlign_3, ROIAlignRotated
from aot.opset.detection.roi_pooling import Method, Positioned, PSROIPooling, ROIPooling
from aot.opset.detection.suppression.class_suppression import Decay, MatrixNms, MulticlassNms
from aot.opset.detection.suppression.corners import Encoding
from aot.opset.detection.suppression.rotated_suppression import NMSRotated
from aot.opset.detection.suppression.selection import Sorting
from aot.opset.detection.suppression.suppression import (
    NonMaxSuppression,
    NonMaxSuppression_1,
    NonMaxSuppression_3,
    NonMaxSuppression_4,
)
from aot.opset.image.colour import BGRtoNV12, I420toBGR, I420toRGB, NV12toBGR, NV12toRGB, RGBtoNV12
from aot.opset.movement.sparse import SparseFillEmptyRows
from aot.opset.recurrent.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss
from aot.runtime.abi import DType
from tests.cases import EXACT, LOOSE
from tests.properties.drawing import INDICES, Draw, Trial, listed

F32 = DType.F32


def number(value: float) -> Array:
    return np.array(value, np.float32)


def boxes(d: Draw, *shape: int, extent: float = 10) -> Array:
    corner = d.array(F32, (*shape, 2), 0, extent * 0.6)
    return np.concatenate([corner, corner + d.array(F32, (*shape, 2), extent * 0.1, extent * 0.4)], -1)


def scores(d: Draw, *shape: int) -> Array:
    """All different, and far enough from each other."""
    count = int(np.prod(shape))
    return ((d.generator().permutation(count) + 0.5) / count).reshape(shape).astype(np.float32)


def rois(d: Draw, count: int, batch: int, extent: float) -> Array:
    first = d.whole(F32, (count, 1), 0, batch - 1)
    return np.concatenate([first, boxes(d, count, extent=extent)], 1).astype(np.float32)


def suppression(d: Draw) -> Trial:
    batch, classes, count = d.integer(1, 2), d.integer(1, 3), d.integer(1, 9)
    limits = [np.array(d.integer(0, 6)), number(d.integer(1, 9) / 10), number(d.integer(0, 5) / 10 + 0.013)]
    if not d.integer(0, 2):
        limits.append(number(0.5))
    op = NonMaxSuppression(d.pick(list(Encoding)), d.flag(), d.pick(INDICES))
    inputs = [boxes(d, batch, count), scores(d, batch, classes, count), *limits]
    return Trial(op, inputs, frozenset({2, 3, 4, 5}), LOOSE)


def first_suppression(d: Draw) -> Trial:
    """Versions 1, 3 and 4, whose outputs have as many rows as there may be."""
    batch, classes, count = d.integer(1, 2), d.integer(1, 3), d.integer(1, 9)
    limits = [np.array(d.integer(0, 6)), number(d.integer(1, 9) / 10), number(d.integer(0, 5) / 10 + 0.013)]
    how, index = (d.pick(list(Encoding)), d.flag()), d.pick(INDICES)
    op = d.pick([NonMaxSuppression_1(*how), NonMaxSuppression_3(*how, index), NonMaxSuppression_4(*how, index)])
    inputs = [boxes(d, batch, count), scores(d, batch, classes, count), *limits]
    return Trial(op, inputs, frozenset({2, 3, 4}), LOOSE)


def rotated(d: Draw) -> Trial:
    batch, classes, count = d.integer(1, 2), d.integer(1, 2), d.integer(1, 7)
    middle, sides = d.array(F32, (batch, count, 2), 0, 5), d.array(F32, (batch, count, 2), 1, 4)
    turned = np.concatenate([middle, sides, d.array(F32, (batch, count, 1), -3, 3)], 2)
    limits = [np.array(d.integer(1, 6)), number(d.integer(1, 9) / 10), number(d.integer(0, 5) / 10 + 0.013)]
    op = NMSRotated(d.flag(), d.pick(INDICES), d.flag())
    return Trial(op, [turned, scores(d, batch, classes, count), *limits], frozenset({2, 3, 4}), LOOSE)


def by_class(d: Draw) -> Trial:
    batch, classes, count = d.integer(1, 2), d.integer(1, 3), d.integer(1, 8)
    inputs = [boxes(d, batch, count), scores(d, batch, classes, count)]
    keep, top = d.pick([-1, 3, 9]), d.pick([-1, 2, 5])
    common = (d.pick(list(Sorting)[:2]), d.flag(), d.pick(INDICES), d.integer(0, 5) / 10, top, keep)
    common += (d.pick([-1, 0]), d.flag())
    if d.flag():
        op = MatrixNms(*common, d.pick(list(Decay)), 2.0, d.pick([0.0, 0.2]))
        return Trial(op, inputs, tolerance=LOOSE)
    return Trial(MulticlassNms(*common, d.integer(1, 9) / 10, d.pick([1.0, 0.8])), inputs, tolerance=LOOSE)


def prior_box(d: Draw) -> Trial:
    grid, image = listed(DType.I64, d.ints(2, 1, 4)), listed(DType.I64, d.ints(2, 30, 90))
    variance = d.pick([(), (0.1,), (0.1, 0.1, 0.2, 0.2)])
    step = d.pick([0.0, 16.0])
    if not d.integer(0, 2):
        op = PriorBoxClustered(d.pick([0.0, 0.5]), variance, d.flag(), (16.0, 30.0), (20.0, 8.0), d.pick([0.0, 8.0]))
        return Trial(op, [grid, image], frozenset({0, 1}), LOOSE)
    low = tuple(float(v) for v in d.ints(d.integer(1, 2), 5, 20))
    high = tuple(v + 20 for v in low) if d.flag() else ()
    ratios = d.pick([(), (2.0,), (2.0, 3.0), (1.0, 0.5)])
    common = (d.pick([0.0, 0.5]), variance, d.flag(), low, high, ratios, d.flag(), step, d.flag() or bool(high))
    op = PriorBox_1(*common) if d.flag() else PriorBox(*common, min_max_aspect_ratios_order=d.flag())
    return Trial(op, [grid, image], frozenset({0, 1}), LOOSE)


def prior_grid(d: Draw) -> Trial:
    h, w = d.ints(2, 1, 4)
    s = d.pick([0.0, 8.0])
    op = ExperimentalDetectronPriorGridGenerator(d.flag(), stride_x=s, stride_y=s)
    arrays = [d.array(F32, (d.integer(1, 3), 4)), d.array(F32, (1, 2, h, w)), d.array(F32, (1, 3, h * 8, w * 8))]
    return Trial(op, arrays, tolerance=LOOSE)


def proposals(d: Draw) -> Trial:
    h, w, ratio, scale = d.integer(1, 3), d.integer(1, 3), (0.5, 1.0, 2.0), (1.0, 2.0)
    anchors, batch = len(ratio) * len(scale), d.integer(1, 2)
    image = np.array([64, 80, 1.5] if d.flag() else [64, 80, 1.5, 1.2], np.float32)
    classes = scores(d, batch, 2 * anchors, h, w)
    arrays = [classes, d.array(F32, (batch, 4 * anchors, h, w), -0.4, 0.4), image]
    common = (16, d.pick([10, 30]), d.pick([4, 20]), d.integer(3, 8) / 10, 16, d.integer(1, 10), ratio, scale)
    more = (d.flag(), d.flag(), d.flag(), d.pick([1.0, 2.0]), d.pick([1.0, 3.0]), d.pick(["", "tensorflow"]))
    op = Proposal(*common, *more) if d.flag() else Proposal_1(*common, *more)
    return Trial(op, arrays, tolerance=LOOSE)


def proposals_of_image(d: Draw) -> Trial:
    h, w, count = d.ints(3, 1, 3)
    anchors = boxes(d, h * w * count, extent=60)
    keep, before = d.integer(2, 9), d.integer(3, 12)
    op = ExperimentalDetectronGenerateProposalsSingleImage(d.pick([0.0, 9.0]), d.integer(3, 8) / 10, keep, before)
    image = np.array([64, 80, 1], np.float32)
    arrays = [image, anchors, d.array(F32, (4 * count, h, w), -0.5, 0.5), scores(d, count, h, w)]
    return Trial(op, arrays, tolerance=LOOSE)


def generated(d: Draw) -> Trial:
    batch, h, w, count = d.ints(4, 1, 3)
    images = np.array([[64, 80, 1.5], [48, 50, 1], [60, 60, 1]], np.float32)[:batch]
    op = GenerateProposals(
        d.pick([0.0, 9.0]), d.integer(3, 8) / 10, d.integer(3, 12), d.integer(2, 9), d.flag(), 1.0, d.pick(INDICES)
    )
    deltas = d.array(F32, (batch, 4 * count, h, w), -0.5, 0.5)
    arrays = [images, boxes(d, h, w, count, extent=60), deltas, scores(d, batch, count, h, w)]
    return Trial(op, arrays, tolerance=LOOSE)


def detections(d: Draw) -> Trial:
    images, priors, classes = d.integer(1, 2), d.integer(1, 7), d.integer(2, 3)
    share, normalized, encoded = d.flag(), d.flag(), d.flag()
    places = 1 if share else classes
    own = boxes(d, priors, extent=1 if normalized else 100)
    if not normalized:
        own = np.concatenate([np.zeros((priors, 1), np.float32), own], 1)
    rows = [own.reshape(1, -1)]
    if not encoded:
        rows.append(np.full((1, rows[0].size if normalized else priors * 4), 0.1, np.float32))
    if not encoded and not normalized:
        rows[1] = np.full_like(rows[0], 0.1)
    prior = np.stack(rows, 1)
    common = {
        "background_label_id": d.pick([0, -1]),
        "top_k": d.pick([-1, 3]),
        "variance_encoded_in_target": encoded,
        "keep_top_k": (d.pick([5, 50]),),
        "code_type": d.pick(list(Code)),
        "share_location": share,
        "nms_threshold": d.integer(2, 8) / 10,
        "confidence_threshold": d.pick([0.0, 0.3]),
        "clip_after_nms": d.flag(),
        "clip_before_nms": d.flag(),
        "decrease_label_id": d.flag(),
        "normalized": normalized,
        "input_height": 1 if normalized else 100,
        "input_width": 1 if normalized else 100,
    }
    arrays = [d.array(F32, (images, priors * places * 4), -0.3, 0.3), scores(d, images, priors * classes), prior]
    op = DetectionOutput(**common) if d.flag() else DetectionOutput_1(**common, num_classes=classes)  # type: ignore[arg-type]
    return Trial(op, arrays, tolerance=LOOSE)


def regions(d: Draw) -> Trial:
    """ROIAlign of all versions, ROIPooling, PSROIPooling."""
    batch, h, w, count = d.integer(1, 2), d.integer(4, 9), d.integer(4, 9), d.integer(1, 4)
    ph, pw = d.ints(2, 1, 3)
    ratio, scale = d.integer(0, 2), d.pick([1.0, 0.5])
    picture, plain = d.array(F32, (batch, 2, h, w)), boxes(d, count, extent=8 / scale)
    which = d.whole(d.pick(INDICES), (count,), 0, batch - 1)
    how = d.pick(list(Pooling))
    match d.integer(0, 5):
        case 0:
            op = ROIAlign(ph, pw, ratio, scale, how, d.pick(list(Aligned)))
            return Trial(op, [picture, plain, which], tolerance=LOOSE)
        case 1:
            return Trial(ROIAlign_3(ph, pw, ratio, scale, how), [picture, plain, which], tolerance=LOOSE)
        case 2:
            turned = np.concatenate([d.array(F32, (count, 4), 1, 6), d.array(F32, (count, 1), -3, 3)], 1)
            op = ROIAlignRotated(ph, pw, ratio, scale, d.flag())
            return Trial(op, [picture, turned, which], tolerance=LOOSE)
        case 3:
            method = d.pick(list(Method))
            extent, scale = (1, 1.0) if method is Method.BILINEAR else (8 / scale, scale)
            op = ROIPooling((ph, pw), (), ph, pw, scale, method)
            return Trial(op, [picture, rois(d, count, batch, extent)], tolerance=LOOSE)
        case 4:
            data = d.array(F32, (batch, 2 * ph * ph, h, w))
            return Trial(PSROIPooling(2, scale, ph), [data, rois(d, count, batch, 8 / scale)], tolerance=LOOSE)
        case _:
            bins = d.ints(2, 1, 3)
            data = d.array(F32, (batch, 2 * bins[0] * bins[1], h, w))
            op = PSROIPooling(2, 1.0, ph, *bins, Positioned.BILINEAR)
            return Trial(op, [data, rois(d, count, batch, 1)], tolerance=LOOSE)


def deformable_regions(d: Draw) -> Trial:
    batch, count, group, part = d.integer(1, 2), d.integer(1, 3), d.integer(1, 3), d.integer(1, 3)
    op = DeformablePSROIPooling(
        2,
        d.pick([1.0, 0.5]),
        group,
        spatial_bins_x=d.integer(1, 3),
        spatial_bins_y=d.integer(1, 3),
        trans_std=0.1,
        part_size=part,
    )
    arrays = [d.array(F32, (batch, 2 * group * group, 8, 9)), rois(d, count, batch, 8)]
    if d.flag():
        arrays.append(d.array(F32, (count, 2 * d.integer(1, 2), part, part)))
    return Trial(op, arrays, tolerance=LOOSE)


def detectron(d: Draw) -> Trial:
    count, classes = d.integer(1, 6), d.integer(2, 3)
    match d.integer(0, 2):
        case 0:
            op = ExperimentalDetectronDetectionOutput(
                0.2, d.integer(2, 8) / 10, classes, d.pick([2, 9]), d.pick([3, 20]), 2.0, (10.0, 10.0, 5.0, 5.0), False
            )
            arrays = [boxes(d, count, extent=40), d.array(F32, (count, 4 * classes), -1, 1), scores(d, count, classes)]
            return Trial(op, [*arrays, np.array([[40, 50, 1]], np.float32)], tolerance=LOOSE)
        case 1:
            op = ExperimentalDetectronTopKROIs(d.integer(1, count))
            return Trial(op, [boxes(d, count), scores(d, count)], tolerance=EXACT)
        case _:
            op = ExperimentalDetectronROIFeatureExtractor(d.integer(1, 3), d.integer(0, 2), (4, 8, 16), d.flag())
            levels = [d.array(F32, (1, 2, n, n)) for n in (16, 8, 4)]
            return Trial(op, [boxes(d, count, extent=60), *levels], tolerance=LOOSE)


def speech(d: Draw) -> Trial:
    batch, steps, classes = d.integer(1, 3), d.integer(1, 7), d.integer(2, 4)
    data = d.array(F32, (batch, steps, classes))
    lengths = d.whole(DType.I32, (batch,), 1, steps)
    match d.integer(0, 2):
        case 0:
            mask = (np.arange(steps)[:, None] < lengths).astype(np.float32)
            return Trial(CTCGreedyDecoder(d.flag()), [data.transpose(1, 0, 2).copy(), mask], tolerance=EXACT)
        case 1:
            op = CTCGreedyDecoderSeqLen(d.flag(), d.pick(INDICES), d.pick(INDICES))
            blank = [np.array([d.integer(0, classes - 1)], np.int32)] if d.flag() else []
            return Trial(op, [data, lengths, *blank], frozenset({2}), EXACT)
        case _:
            labels = d.whole(DType.I32, (batch, steps), 0, classes - 2)
            counts = np.array([d.integer(0, int(n)) for n in lengths], np.int32)
            blank = [np.array(classes - 1, np.int32)] if d.flag() else []
            op = CTCLoss(d.flag(), d.flag(), d.flag())
            return Trial(op, [data, lengths, labels, counts, *blank], frozenset({4}), LOOSE)


def colour(d: Draw) -> Trial:
    n, h, w = d.integer(1, 2), 2 * d.integer(1, 4), 2 * d.integer(1, 4)
    dtype = d.pick((F32, DType.U8))

    def plane(*shape: int) -> Array:
        return d.array(dtype, shape, 0, 255)

    match d.integer(0, 2):
        case 0:
            op = d.pick([NV12toBGR, NV12toRGB])()
            separate = [plane(n, h, w, 1), plane(n, h // 2, w // 2, 2)]
        case 1:
            op = d.pick([I420toBGR, I420toRGB])()
            separate = [plane(n, h, w, 1), plane(n, h // 2, w // 2, 1), plane(n, h // 2, w // 2, 1)]
        case _:
            return Trial(d.pick([RGBtoNV12, BGRtoNV12])(d.flag()), [plane(n, h, w, 3)], tolerance=LOOSE)
    return Trial(op, separate if d.flag() else [plane(n, h * 3 // 2, w, 1)], tolerance=LOOSE)


def yolo(d: Draw) -> Trial:
    classes, count, softmax = d.integer(1, 3), d.integer(1, 3), d.flag()
    mask = tuple(range(d.integer(1, count)))
    regions = count if softmax else len(mask)
    x = d.array(F32, (d.integer(1, 2), regions * (classes + 5), d.integer(1, 3), d.integer(1, 3)))
    op = RegionYolo((1.0, 2.0), 1, 4, classes, 3, count, softmax, mask)
    return Trial(op, [x], tolerance=LOOSE)


def random_numbers(d: Draw) -> Trial:
    dtype = d.pick((F32, DType.F16, DType.I32, DType.I64))
    low, high = d.integer(-9, 0), d.integer(1, 9)
    kind = d.array(dtype, ()).dtype
    op = RandomUniform(
        output_type=dtype, global_seed=d.integer(1, 999), op_seed=d.integer(1, 999), alignment=d.pick(list(Alignment))
    )
    shape = listed(d.pick(INDICES), d.ints(d.integer(1, 3), 1, 5))
    return Trial(op, [shape, np.array(low, kind), np.array(high, kind)], frozenset({0, 1, 2}), LOOSE)


def multinomial(d: Draw) -> Trial:
    rows, classes, logs = d.integer(1, 3), d.integer(1, 5), d.flag()
    op = Multinomial(
        convert_type=d.pick(INDICES),
        with_replacement=d.flag(),
        log_probs=logs,
        global_seed=d.integer(0, 999),
        op_seed=d.integer(1, 999),
    )
    count = d.integer(1, 6 if op.with_replacement else classes)
    low, high = (-3, 0) if logs else (0.1, 1)
    return Trial(op, [d.array(F32, (rows, classes), low, high), np.array(count)], frozenset({1}), EXACT)


def sparse(d: Draw) -> Trial:
    rows, columns = d.integer(1, 6), d.integer(1, 5)
    filled = d.generator().random((rows, columns)) < 0.3
    indices = np.argwhere(filled).astype(np.int64)
    values = d.array(F32, (len(indices),))
    arrays = [values, np.array([rows, columns]), indices, number(d.integer(0, 9))]
    return Trial(SparseFillEmptyRows(), arrays, frozenset({1}), EXACT)


TRIALS = [
    suppression,
    first_suppression,
    rotated,
    by_class,
    prior_box,
    prior_grid,
    proposals,
    proposals_of_image,
    generated,
    detections,
    regions,
    deformable_regions,
    detectron,
    speech,
    colour,
    yolo,
    random_numbers,
    multinomial,
    sparse,
]
