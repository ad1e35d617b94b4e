"""Statistics, distances, special functions, losses, and forms that are made of simpler ones."""

import numpy as np

from tests.frontends.pt2.case import b, case, f, i, p

X, Y, V = f(3, 4), f(3, 4), f(7)
HOLES = np.where(b(3, 6), f(3, 6), np.nan).astype(np.float32)
CLASSES = np.array([1, 3, 0])
RUNS = np.array([1, 1, 2, 2, 2, 1, 3])
SQUARE = f(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)
NEAR = 1e-5
AT, STARTS = np.array([1, 5, 0, 2, 2]), np.array([0, 2, 5])

CASES = [
    # statistics
    *(
        case("quantile.scalar", X, q, dim, keep, interpolation=how)
        for q, dim, keep, how in ((0.3, 1, False, "linear"), (0.7, 0, True, "lower"), (0.5, None, True, "midpoint"))
    ),
    case("quantile.default", f(3, 4, 5), p(2) / 3, 1, True, interpolation="higher", fixed=True),
    case("nanquantile.default", HOLES, p(2) / 3, 1, fixed=True),
    case("nanmedian.dim", HOLES, 1, fixed=True),
    case("diff.default", X, 2, 1),
    case("diff.default", b(5)),
    case("trapezoid.dx", X, dx=0.5, dim=1),
    case("trapezoid.x", X, f(4)),
    *(case(f"{name}.default", X, 1) for name in ("cummax", "cummin", "logcumsumexp")),
    case("mode.default", np.array([[1, 2, 2, 3], [3, 3, 1, 1]]), fixed=True),
    case("renorm.default", X, 2, 0, 1.0),
    case("histc.default", V, 4, -1, 1),
    case("bincount.default", np.array([3, 0, 1, 3]), None, 6, fixed=True),
    case("nanmean.default", HOLES, [1], fixed=True),
    # distances
    *(case("_pdist_forward.default", f(4, 3), n, fixed=True, tolerance=NEAR) for n in (1.0, 2.0)),
    case("dist.default", X, Y, 3, tolerance=NEAR),
    case("pairwise_distance.default", X, Y, 2.0, 1e-6, True, tolerance=NEAR),
    case("cosine_similarity.default", X, Y, 1, tolerance=NEAR),
    case("_weight_norm.default", f(4, 3, 2), p(4, 1, 1), 0),
    # special
    case("lgamma.default", f(9, low=-3.5, high=5), tolerance=NEAR),
    case("float_power.Tensor_Tensor", p(3), f(3)),
    case("heaviside.default", np.array([-1, 0, 2], np.float32), f(3)),
    case("ldexp.Tensor", X, i(4, low=-3, high=3)),
    *(case(f"special_{name}.default", p(4)) for name in ("entr", "ndtr")),
    # matrices
    case("addr.default", X, f(3), f(4), beta=2, alpha=0.5),
    case("tensordot.default", f(2, 3, 4), f(4, 3, 5), [1, 2], [1, 0]),
    case("kron.default", f(2, 3), f(3, 2), fixed=True),
    *(case("linalg_matrix_power.default", SQUARE, n, fixed=True, tolerance=NEAR) for n in (0, 3, -2)),
    case("logdet.default", SQUARE, fixed=True, tolerance=NEAR),
    case("linalg_slogdet.default", SQUARE, fixed=True, tolerance=NEAR),
    case("linalg_solve.default", SQUARE, f(2, 3, 2), fixed=True, tolerance=NEAR),
    *(case("linalg_matrix_norm.default", X, n) for n in (1, -1, np.inf, -np.inf)),
    case("linalg_norm.default", X),
    # normalisation
    case("native_group_norm.default", f(2, 6, 4), p(6), f(6), 2, 6, 4, 3, 1e-5, tolerance=NEAR),
    case("_native_batch_norm_legit.no_stats", f(3, 2, 4), p(2), f(2), True, 0.1, 1e-5, tolerance=NEAR),
    # bags: the outputs behind the first one are not read
    *(
        case(
            "embedding_bag.padding_idx",
            f(6, 3),
            AT,
            STARTS,
            False,
            mode,
            False,
            share,
            last,
            None,
            first=True,
            fixed=True,
        )
        for mode, share, last in ((0, None, False), (1, None, True), (0, p(5), False))
    ),
    case("_embedding_bag.default", f(6, 3), AT, STARTS, False, 0, first=True, fixed=True),
    # writes
    *(
        case("index_reduce.default", X, 0, np.array([2, 0]), f(2, 4), how, fixed=True)
        for how in ("prod", "amax", "mean")
    ),
    case("put.default", X, np.array([5, 0]), f(2), fixed=True),
    case("take_along_dim.default", X, i(3, 1, low=0, high=3), 1, fixed=True),
    # forms
    *(case(f"atleast_{n}d.default", f(3)) for n in (1, 2, 3)),
    case("vsplit.int", f(4, 3), 2, fixed=True),
    case("unsafe_split.Tensor", f(5, 3), 2),
    case("fliplr.default", X),
    *(case("rot90.default", f(2, 3, 4), k, [0, 2]) for k in range(4)),
    case("block_diag.default", [f(2, 3), f(1, 2), f(2)], fixed=True),
    case("cartesian_prod.default", [f(2), f(3)], fixed=True),
    case("sum_to_size.default", f(2, 3, 4), [3, 1], fixed=True),
    case("isin.Tensor_Tensor", i(2, 3), i(4), invert=True),
    case("_unique2.default", RUNS, True, True, True, fixed=True),
    case("unique_dim.default", np.array([[1, 2], [0, 1], [1, 2]]), 0, True, True, True, fixed=True),
    case("unique_consecutive.default", RUNS, True, True, fixed=True),
    case("diagflat.default", f(2, 2), -1, fixed=True),
    case("one_hot.default", CLASSES, 5),
    case("nonzero_static.default", b(2, 3), size=8, fixed=True),
    case("linspace.Tensor_Scalar", f(), 2.5, 7, fixed=True, tolerance=NEAR),
    case("logspace.default", 0, 2, 5, fixed=True),
    case("resize.default", f(2, 3), [2, 2], fixed=True),
    # losses
    *(
        case(f"{name}.default", X, Y, n)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for n in range(3)
    ),
    case("binary_cross_entropy.default", p(3) / 4, p(3) / 4, p(3), tolerance=NEAR),
    case("binary_cross_entropy_with_logits.default", X, p(3, 4) / 4, None, p(4), 2, tolerance=NEAR),
    case("kl_div.default", X, p(3, 4), 2),
    case("soft_margin_loss.default", X, Y),
    *(case("cross_entropy_loss.default", X, CLASSES, p(4), n, 3, tolerance=NEAR) for n in range(3)),
    case("cross_entropy_loss.default", X, p(3, 4), None, 1, -100, 0.1, tolerance=NEAR),
    case("where.default", b(2, 3), fixed=True),
    case("where.default", b(), fixed=True),
]
