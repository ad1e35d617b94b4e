"""Thresholds and prices that depend on processors and caches, in one table.

Schedules, the emitter, the driver and the lowering passes read them as `COSTS.name`. All targets share one table; facts
that differ between targets (cache sizes, registers, near L3) are fields and properties of `aot.codegen.target.Target`.

A comment gives unit, meaning and source. Sources:

  measured DATE   a commit of that date introduced the rule for a gain that its subject names; which machine and command
                  gave the number was not recorded (docs/measurements lists the machines)
  derived         follows from the instruction set or from documented latencies and sizes
  estimated       no measurement of this number is known; a value nearby may do as well

To measure again, change a value and run `python -m benchmarks` or `python -m benchmarks.ops` before and after.
"""

from __future__ import annotations


class Costs:  # single instance: a dataclass would first compile a constructor with all these parameters
    """Target-dependent thresholds. "Rows" are iterations of the output axes that are not in lanes."""

    # ---- processors
    line_bytes: int = 64  # bytes of a cache line; derived: x86-64 and most aarch64
    page_bytes: int = 4096  # bytes; addresses this far apart compete for the same lines of L1; derived
    cache_ways: int = 8  # lines of a set of L1; derived: x86-64 from Zen and Haswell on
    latency_chains: int = 8  # independent multiply-adds that fill both units: 2 a cycle, latency 4; derived
    gather_distance: int = 5  # elements between lanes from which on each lane is loaded by itself; measured 2026-11-22
    min_transposed_extent: int = 4  # rows or lanes from which on a transpose in registers pays; estimated
    vector_extent: int = 8  # iterations of an axis that fill vectors well; derived: lanes of f32 in AVX2

    # ---- products: codegen.schedules.products.product, product_form
    max_tile_rows: int = 14  # rows of a register tile: more only spend loads; estimated
    max_overlap: float = 0.02  # share of rows that tiles of one height compute twice, for half of the code; estimated
    tile_code: float = 0.02  # share of a product's time that the code of one more size of its tile is worth; estimated
    min_looped_results: int = 12  # vectors of a tile from which on a loop computes results; measured 2026-11-30
    min_looped_steps: int = 512  # of a sum that is 100 times as long as the copies for such a loop; derived
    max_written_functions: int = 16  # places of a kernel at which functions are written out; measured 2026-11-29
    little_tile_rows: int = 6  # same, for little code: with two vectors, chains enough for both units; derived
    single_use_rows: int = 28  # rows up to which memory brings the next panel about as late as it is needed; estimated
    fetch_rows: int = 8  # rows from which on a panel is used longer than it takes to fetch; measured 2026-11-22
    stream_rows: int = 4  # rows up to which only data of the same panel can be fetched in time; measured 2026-11-23
    fetch_steps: int = 2  # steps of the sum between prefetches: each line is prefetched once; measured 2026-11-30
    long_fetch_steps: int = 4  # same, where the last vector of a tile is shorter, and without carried pointers
    fetch_words: int = 32  # words of a sum by dots between prefetches of the next panel; measured 2026-11-26
    epilogue_fetch_steps: int = 48  # steps of the sum during which the epilogue's lines arrive; measured 2026-11-22
    stream_distance_bytes: int = 2048  # prefetch distance in a panel that is read once; measured 2026-11-23
    tiles_ahead: int = 2  # tiles between use and prefetch of an operand that lies across the sum; measured 2026-11-26
    streamed_vectors: int = 8  # vectors of a tile whose columns come from memory, two rows at once; measured 2026-11-26
    min_overlapped_steps: int = 4  # steps of a tile's sum that hide another tile's epilogue; measured 2026-11-26
    shared_panel_bytes: int = 256 << 10  # weights from which on cores share panels of one row tile; measured 2026-11-23
    min_block_steps: int = 384  # steps of the sum that pay for a round trip of the accumulators; measured 2026-11-22
    max_block_panels: int = 4  # panels that take turns on a block of the sum; measured 2026-11-22
    max_near_rows: int = 64  # rows of halved products that share a panel in L1; measured 2026-11-26
    min_near_rows: int = 24  # rows for which a panel is brought from L2; estimated
    min_core_rows: int = 48  # rows that a core gets at least if each core reads all weights; measured 2026-11-22
    min_scaled_terms: int = 16  # terms of a sum that pay for accumulators of their own; estimated
    min_skipped_share: float = 0.08  # share of a sum's terms in padding that pays for tests; measured 2026-11-22
    balanced_row_tiles: int = 3  # tiles up to which dynamic rows are balanced instead of cut; estimated
    balanced_tile_rows: int = 6  # rows of a tile up to which dynamic rows are always balanced; estimated
    static_tile_rows: int = 3  # rows that fill both units with 4 vectors, whatever else varies; derived: 12 chains
    min_product_lanes: int = 4  # iterations of a lane axis, below which lanes may run along the sum; estimated

    # ---- windows over channels: codegen.schedules.products.depthwise, grouped
    window_tile_rows: int = 7  # rows of a window's tile; estimated
    max_gathered_lanes: int = 16  # lanes of windows whose lanes are loaded one by one; estimated
    max_unrolled_gathers: int = 1024  # such loads that are unrolled, for the size of the code; estimated
    max_unrolled_window: int = 16  # points of a window that is unrolled; of larger ones a row; measured 2026-11-30
    max_unrolled_words: int = 32  # same, of bytes that dots sum four at a time; estimated
    max_unrolled_slide: int = 7  # points of a grouped window that is unrolled along its rows; measured 2026-11-22
    min_block_rows: int = 4  # rows of a block: fewer lose rows that windows share between blocks; measured 2026-11-24

    # ---- sums in lanes and pointwise: codegen.schedules.rows, pointwise
    partial_vectors: int = 4  # vectors of partial results of a sum along lanes; estimated
    max_adjacent_outputs: int = 6  # outputs whose sums share a row's loads; estimated
    rows_block: int = 64  # rows of an operand that stay in a cache while the other operand streams; estimated
    row_block_bytes: int = 4096  # of short rows that a group computes together: an eighth of L1; measured 2026-11-26
    min_row_block: int = 4  # rows: a few long ones lose more to L1 than the folds wait; measured 2026-11-26
    max_row_block: int = 16  # rows whose folds cover each other; measured 2026-11-26
    units_per_core: int = 4  # iterations for each core that share the work evenly; estimated
    pointwise_vectors: int = 4  # vectors in flight; estimated
    max_pointwise_code: int = 10_000  # operations of all copies of an expression, for the size of the code; estimated
    max_interleaved_vectors: int = 4  # vectors after which the pattern of lanes must repeat; estimated
    min_parallel_iterations: int = 16  # iterations around an inner loop that are enough for threads; estimated

    # ---- attention: codegen.schedules.attention
    max_attention_rows: int = 64  # rows of a block; estimated
    min_attention_rows: int = 12  # rows of a block; estimated
    dynamic_attention_rows: int = 24  # rows if columns are dynamic: thousands of columns fit L2; measured 2026-11-23

    # ---- threads: codegen.llvm.driver
    chunk_work: int = 10_000  # operations below which a chunk costs more to hand over than to run; estimated
    chunk_traffic: int = 16 * 1024  # bytes below which the same holds; estimated
    max_thread_chunks: int = 8  # chunks for each thread, of a long call; estimated
    min_thread_chunks: int = 2  # chunks for each thread, of a short call; estimated
    fine_chunk: int = 128  # pieces worth a chunk of their own where each thread has some; measured 2026-11-24
    alternating_bytes: int = 256 * 1024  # weights from which on calls alternate their traversal; measured 2026-11-22
    min_shared_pieces: int = 32  # pieces of a segment below which waking workers takes longer; estimated
    spin_ns: int = 30_000  # nanoseconds in which a sleeping thread wakes up; estimated

    # ---- Winograd: aot.lowering.algorithms.winograd_*
    winograd_weight: float = 8.0  # multiply-adds that take as long as a weight from a cache; measured 2026-11-21
    winograd_far_weight: float = 24.0  # multiply-adds that take as long as a weight from memory; measured 2026-11-24
    evicted_weight_bytes: int = 64 << 20  # model weights that a far, shared L3 loses between calls; measured 2026-11-24
    winograd_transform: float = 4.0  # operations of a transform for a point and channel; estimated
    winograd_short_transform: float = 2.5  # its time where products are dots of bf16, relative to them; estimated
    winograd_byte_transforms: tuple[float, ...] = (2.0, 6.0)  # of bytes, by stride, for one; measured 2026-11-26
    max_winograd_growth: int = 6  # transformed weights over plain ones; estimated
    max_phase_growth: int = 8  # same, where phases of a dilated window have transforms by their lengths; estimated
    min_winograd_channels: int = 16  # input and output channels; estimated
    min_winograd_outputs: int = 4  # outputs in each direction; estimated
    winograd_tiles: int = 14  # tiles of a block: full register tiles that stay in L2; measured 2026-11-21
    min_winograd_tiles: int = 7  # tiles for which weights are read once more; estimated
    dynamic_winograd_tiles: tuple[int, ...] = (28, 16)  # tiles of a block of a dynamic number; estimated
    winograd_block_bytes: int = 1 << 20  # transforms of a block up to which the larger number is taken; estimated
    min_winograd_blocks: int = 4  # blocks from which on threads share them evenly; measured 2026-11-21

    # ---- Strassen: aot.lowering.algorithms.strassen_*
    min_strassen_rows: int = 32  # rows below which panels come too late from memory; measured 2026-11-23
    max_strassen_time: float = 0.96  # time relative to a plain product up to which it pays; estimated
    strassen_products: float = 0.9  # time of the seven products, relative to the eight; measured 2026-11-23
    strassen_near_row: float = 9.0  # multiply-adds for an element of the rows, halves in L2; measured 2026-11-23
    strassen_far_row: float = 12.0  # multiply-adds for an element of the rows, halves in L3; measured 2026-11-23
    strassen_result: float = 11.0  # multiply-adds for an element of the result; measured 2026-11-23
    strassen_vectors: int = 2  # vectors of a register tile's row: higher tiles read panels less often; estimated
    strassen_pitch: int = 16  # elements between rows of halves, against rows that share cache lines; estimated

    # ---- products of i16 by half of the multiplications: aot.lowering.algorithms.use_fast_inner_products
    min_halved_columns: int = 32  # columns for which the sums of data are made; estimated
    min_halved_rows: int = 4  # rows of a register tile; estimated
    min_halved_terms: int = 32  # terms of the sum; estimated
    max_halved_terms: int = 2048  # terms of which a panel stays near: short tiles read it often; measured 2026-11-26

    # ---- recurrences, pooling, functions, strips: aot.lowering
    max_unrolled_steps: int = 512  # time steps that are worth a call each; estimated
    private_weight_bytes: int = 1 << 17  # weights that one thread keeps in its own cache; measured 2026-11-21
    min_sequences: int = 8  # sequences of a recurrence that threads share: two blocks of 4 rows; estimated
    dynamic_sequence_rows: int = 4  # rows of a block of a dynamic number of sequences; estimated
    max_sequence_rows: int = 6  # rows of a block, which are one register tile; estimated
    max_pooling_terms: float = 0.5  # terms left, relative to before, up to which separation pays; measured 2026-11-23
    max_pooling_lane_terms: float = 0.75  # same for a maximum over channels in lanes: NaN tests; measured 2026-11-23
    max_function_columns: int = 4096  # sums of a row, in half of L1, that wait for functions of them; estimated
    max_strip_recompute: float = 0.15  # share of a strip's input rows that are computed twice; measured 2026-11-24
    min_strip_columns: int = 8  # columns that give a product rows enough in one image row; estimated

    # ---- layout and fusion: aot.lowering
    min_plane_columns: int = 16  # columns of an image that fill a vector; derived: lanes of f32 in AVX-512
    max_plane_channels: int = 24  # channels whose planes cost less to write than the lanes gain; measured 2026-11-26
    min_plane_reads: int = 8  # reads of each element from which on lanes along columns pay; estimated
    copy_reads: int = 16  # reads of each element from which on a copy in a better layout pays; estimated
    min_word_rows: int = 48  # rows that multiply columns of bf16 from which on words in memory pay; measured 2026-11-26
    scattered_store: float = 4.0  # cost of a strided store, relative to a strided load; estimated
    skipped_halo_share: float = 0.1  # halo rows over image rows, from which on none are stored; estimated
    min_far_bytes: int = 512 << 10  # of a value that leaves L2 before it is read once more; measured 2026-11-26
    row_temporary_bytes: int = 1 << 17  # temporaries of one row of a group, at most; estimated
    single_row_points: int = 1 << 14  # points of a single row up to which one thread computes it; estimated
    min_hoisted_iterations: int = 4  # iterations of the axis along which values are shared; estimated
    min_hoisted_operations: int = 12  # operations saved at each point that pay for a group; estimated
    max_recomputed_operations: int = 2  # of a producer that each of several consumers computes itself; estimated
    max_halo_points: int = 64  # of a halo on one side, or the size of the dimension if that is larger; estimated

    # ---- small numbers: aot.lowering.storage, aot.lowering.numbers
    min_narrowed_elements: int = 1 << 10  # elements of a constant that are worth a conversion; estimated
    min_compressed_elements: int = 1 << 12  # elements of a constant that are worth compression; estimated
    memory_bound_loads: int = 8  # loads of an element up to which memory is slower than conversions; estimated
    min_dot_terms: int = 8  # terms of a sum of small integers, or of bf16 along memory; estimated
    min_dot_window: int = 2  # rows and columns of windows over channels that are worth words of bytes; estimated
    min_tabulated_operations: int = 12  # operations of a function that a table of bytes replaces; measured 2026-11-26
    min_dot_outputs: int = 4  # outputs side by side; derived: lanes of the shortest dot instruction

    # ---- numbers of 16 bits: aot.lowering.numbers.precision
    min_word_columns: int = 8  # columns for which words of two terms beat f32, half of a tile register empty; estimated
    min_short_rows: int = 4  # rows below which memory limits a product: weights are short, sums in any order; estimated
    min_converted_window: int = 9  # terms of a window whose conversions cost more than twice the bytes; estimated


COSTS = Costs()
