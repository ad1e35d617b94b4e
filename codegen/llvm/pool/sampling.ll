; Chooses the next token from its logits, by the arithmetic of runtime/generation/sampling.py and in its order, so that
; both give equal tokens. The generator of random numbers is NumPy's PCG64, seeded as NumPy does it (SeedSequence).
;
; The most probable tokens are taken from a heap of all: few of them are looked at, where one token is drawn.

%random = type { i128, i128 }  ; state, increment
; logits, numbers of tokens: a heap, behind it those that were taken, the last one first; weights; words; how many were taken
%ranking = type { ptr, ptr, ptr, i64, i64 }

declare i64 @llvm.fshr.i64(i64, i64, i64)
declare double @llvm.fabs.f64(double)

define internal i32 @hashed(i32 %value, ptr %constant, i32 %multiplier) nounwind {
  %before = load i32, ptr %constant, align 4
  %after = mul i32 %before, %multiplier
  store i32 %after, ptr %constant, align 4
  %changed = xor i32 %value, %before
  %product = mul i32 %changed, %after
  %high = lshr i32 %product, 16
  %hash = xor i32 %product, %high
  ret i32 %hash
}

define internal void @seed_random(ptr %random, i64 %seed) nounwind {
entry:
  %pool = alloca [4 x i32], align 4
  %words = alloca [8 x i32], align 8
  %constant = alloca i32, align 4
  store i32 $hash_first, ptr %constant, align 4
  %pool.1 = getelementptr i32, ptr %pool, i64 1
  %pool.2 = getelementptr i32, ptr %pool, i64 2
  %pool.3 = getelementptr i32, ptr %pool, i64 3
  %low = trunc i64 %seed to i32
  %above = lshr i64 %seed, 32
  %high = trunc i64 %above to i32
  %hash.0 = call i32 @hashed(i32 %low, ptr %constant, i32 $hash_factor)
  %hash.1 = call i32 @hashed(i32 %high, ptr %constant, i32 $hash_factor)
  %hash.2 = call i32 @hashed(i32 0, ptr %constant, i32 $hash_factor)
  %hash.3 = call i32 @hashed(i32 0, ptr %constant, i32 $hash_factor)
  store i32 %hash.0, ptr %pool, align 4
  store i32 %hash.1, ptr %pool.1, align 4
  store i32 %hash.2, ptr %pool.2, align 4
  store i32 %hash.3, ptr %pool.3, align 4
  br label %pair
pair:
  ; each word of the pool is mixed into each other one
  %n = phi i64 [ 0, %entry ], [ %n.next, %paired ]
  %from = lshr i64 %n, 2
  %to = and i64 %n, 3
  %same = icmp eq i64 %from, %to
  br i1 %same, label %paired, label %mix
mix:
  %from.at = getelementptr i32, ptr %pool, i64 %from
  %to.at = getelementptr i32, ptr %pool, i64 %to
  %from.word = load i32, ptr %from.at, align 4
  %to.word = load i32, ptr %to.at, align 4
  %hash = call i32 @hashed(i32 %from.word, ptr %constant, i32 $hash_factor)
  %left = mul i32 %to.word, $mix_left
  %right = mul i32 %hash, $mix_right
  %mixed = sub i32 %left, %right
  %mixed.high = lshr i32 %mixed, 16
  %mixed.whole = xor i32 %mixed, %mixed.high
  store i32 %mixed.whole, ptr %to.at, align 4
  br label %paired
paired:
  %n.next = add i64 %n, 1
  %more.pairs = icmp ult i64 %n.next, 16
  br i1 %more.pairs, label %pair, label %begin.words
begin.words:
  store i32 $state_first, ptr %constant, align 4
  br label %word
word:
  %k = phi i64 [ 0, %begin.words ], [ %k.next, %word ]
  %pool.index = and i64 %k, 3
  %pool.at = getelementptr i32, ptr %pool, i64 %pool.index
  %pool.word = load i32, ptr %pool.at, align 4
  %made = call i32 @hashed(i32 %pool.word, ptr %constant, i32 $state_factor)
  %word.at = getelementptr i32, ptr %words, i64 %k
  store i32 %made, ptr %word.at, align 4
  %k.next = add i64 %k, 1
  %more.words = icmp ult i64 %k.next, 8
  br i1 %more.words, label %word, label %set
set:
  %state = call i128 @joined_words(ptr %words)
  %sequence.at = getelementptr i32, ptr %words, i64 4
  %sequence = call i128 @joined_words(ptr %sequence.at)
  %twice = shl i128 %sequence, 1
  %increment = or i128 %twice, 1
  %increment.at = getelementptr %random, ptr %random, i64 0, i32 1
  store i128 %increment, ptr %increment.at, align 16
  %first = add i128 %state, %increment
  store i128 %first, ptr %random, align 16
  %ignored = call i128 @step_random(ptr %random)
  ret void
}

; Two words of 64 bits as one number, the first one above.
define internal i128 @joined_words(ptr %words) nounwind {
  %low.at = getelementptr i64, ptr %words, i64 1
  %high = load i64, ptr %words, align 8
  %low = load i64, ptr %low.at, align 8
  %high.wide = zext i64 %high to i128
  %low.wide = zext i64 %low to i128
  %shifted = shl i128 %high.wide, 64
  %whole = or i128 %shifted, %low.wide
  ret i128 %whole
}

define internal i128 @step_random(ptr %random) nounwind {
  %increment.at = getelementptr %random, ptr %random, i64 0, i32 1
  %increment = load i128, ptr %increment.at, align 16
  %before = load i128, ptr %random, align 16
  %product = mul i128 %before, $random_factor
  %after = add i128 %product, %increment
  store i128 %after, ptr %random, align 16
  ret i128 %after
}

; A number from 0 to below 1.
define internal double @draw_random(ptr %random) nounwind {
  %state = call i128 @step_random(ptr %random)
  %above = lshr i128 %state, 64
  %high = trunc i128 %above to i64
  %low = trunc i128 %state to i64
  %mixed = xor i64 %high, %low
  %top = lshr i128 %state, 122
  %turn = trunc i128 %top to i64
  %turned = call i64 @llvm.fshr.i64(i64 %mixed, i64 %mixed, i64 %turn)
  %bits = lshr i64 %turned, 11
  %whole = uitofp i64 %bits to double
  %drawn = fmul double %whole, $two_to_minus_53
  ret double %drawn
}

define internal double @exponential(double %x) nounwind {
  %counts = fcmp oge double %x, $least_exponent
  %held = select i1 %counts, double %x, double $least_exponent
  %scaled = fmul double %held, $log2_e
  %shifted = fadd double %scaled, $rounding
  %twos = fsub double %shifted, $rounding
  %high = fmul double %twos, $ln2_high
  %less = fsub double %held, %high
  %low = fmul double %twos, $ln2_low
  %rest = fsub double %less, %low
  $exp_series
  %power = fptosi double %twos to i64
  %biased = add i64 %power, 1023
  %bits = shl i64 %biased, 52
  %factor = bitcast i64 %bits to double
  %whole = fmul double %series, %factor
  %found = select i1 %counts, double %whole, double 0.0
  ret double %found
}

; True if token %a is more probable than token %b, or as probable and has a lower number.
define internal i1 @ranks_before(ptr %logits, i32 %a, i32 %b) nounwind {
  %a.wide = zext i32 %a to i64
  %b.wide = zext i32 %b to i64
  %a.at = getelementptr float, ptr %logits, i64 %a.wide
  %b.at = getelementptr float, ptr %logits, i64 %b.wide
  %a.logit = load float, ptr %a.at, align 4
  %b.logit = load float, ptr %b.at, align 4
  %greater = fcmp ogt float %a.logit, %b.logit
  %equal = fcmp oeq float %a.logit, %b.logit
  %first = icmp ult i32 %a, %b
  %tie = and i1 %equal, %first
  %before = or i1 %greater, %tie
  ret i1 %before
}

; Makes a heap of the %size first tokens, if those below %start are heaps.
define internal void @sift(ptr %logits, ptr %heap, i64 %start, i64 %size) nounwind {
entry:
  %start.at = getelementptr i32, ptr %heap, i64 %start
  %token = load i32, ptr %start.at, align 4
  br label %level
level:
  %at = phi i64 [ %start, %entry ], [ %child, %descend ]
  %twice = shl i64 %at, 1
  %left = add i64 %twice, 1
  %right = add i64 %twice, 2
  %has.left = icmp ult i64 %left, %size
  br i1 %has.left, label %choose, label %end
choose:
  %left.at = getelementptr i32, ptr %heap, i64 %left
  %left.token = load i32, ptr %left.at, align 4
  %has.right = icmp ult i64 %right, %size
  br i1 %has.right, label %both, label %chosen
both:
  %right.at = getelementptr i32, ptr %heap, i64 %right
  %right.token = load i32, ptr %right.at, align 4
  %right.first = call i1 @ranks_before(ptr %logits, i32 %right.token, i32 %left.token)
  %better = select i1 %right.first, i64 %right, i64 %left
  %better.token = select i1 %right.first, i32 %right.token, i32 %left.token
  br label %chosen
chosen:
  %child = phi i64 [ %left, %choose ], [ %better, %both ]
  %child.token = phi i32 [ %left.token, %choose ], [ %better.token, %both ]
  %below = call i1 @ranks_before(ptr %logits, i32 %child.token, i32 %token)
  br i1 %below, label %descend, label %end
descend:
  %hole = getelementptr i32, ptr %heap, i64 %at
  store i32 %child.token, ptr %hole, align 4
  br label %level
end:
  %place = getelementptr i32, ptr %heap, i64 %at
  store i32 %token, ptr %place, align 4
  ret void
}

; Token %index of the most probable ones; those before it were asked for.
define internal i64 @ranked(ptr %ranking, i64 %index) nounwind {
entry:
  %logits = load ptr, ptr %ranking, align 8
  %heap.at = getelementptr %ranking, ptr %ranking, i64 0, i32 1
  %heap = load ptr, ptr %heap.at, align 8
  %words.at = getelementptr %ranking, ptr %ranking, i64 0, i32 3
  %words = load i64, ptr %words.at, align 8
  %taken.at = getelementptr %ranking, ptr %ranking, i64 0, i32 4
  %taken = load i64, ptr %taken.at, align 8
  %behind = sub i64 %words, %index
  %last = sub i64 %behind, 1
  %last.at = getelementptr i32, ptr %heap, i64 %last
  %known = icmp ult i64 %index, %taken
  br i1 %known, label %found, label %take
take:
  %top = load i32, ptr %heap, align 4
  %moved = load i32, ptr %last.at, align 4
  store i32 %moved, ptr %heap, align 4
  store i32 %top, ptr %last.at, align 4
  call void @sift(ptr %logits, ptr %heap, i64 0, i64 %last)
  %taken.now = add i64 %index, 1
  store i64 %taken.now, ptr %taken.at, align 8
  br label %found
found:
  %token = load i32, ptr %last.at, align 4
  %wide = zext i32 %token to i64
  ret i64 %wide
}

; Adds up weights, of the most probable token first, until the sum is %limit or more (%beyond: more than it) or there are
; %most; stores the sum and returns the index of the last token.
define internal i64 @add_weights(ptr %ranking, i64 %most, double %limit, i1 %beyond, ptr %sum) nounwind {
entry:
  %weights.at = getelementptr %ranking, ptr %ranking, i64 0, i32 2
  %weights = load ptr, ptr %weights.at, align 8
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %count, %on ]
  %before = phi double [ 0.0, %entry ], [ %after, %on ]
  %token = call i64 @ranked(ptr %ranking, i64 %index)
  %weight.at = getelementptr double, ptr %weights, i64 %token
  %weight = load double, ptr %weight.at, align 8
  %after = fadd double %before, %weight
  %more = fcmp ogt double %after, %limit
  %as.much = fcmp oge double %after, %limit
  %reached = select i1 %beyond, i1 %more, i1 %as.much
  %count = add i64 %index, 1
  %all = icmp uge i64 %count, %most
  %ends = or i1 %reached, %all
  br i1 %ends, label %end, label %on
on:
  br label %next
end:
  store double %after, ptr %sum, align 8
  ret i64 %index
}

; The token with the greatest logit, the first of equal ones; -1 if a logit is NaN.
define internal i64 @greatest(ptr %logits, i64 %words) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %number ]
  %best = phi i64 [ 0, %entry ], [ %best.now, %number ]
  %most = phi float [ 0xFFF0000000000000, %entry ], [ %most.now, %number ]
  %at = getelementptr float, ptr %logits, i64 %i
  %logit = load float, ptr %at, align 4
  %is.nan = fcmp uno float %logit, 0.0
  br i1 %is.nan, label %bad, label %number
bad:
  ret i64 -1
number:
  %greater = fcmp ogt float %logit, %most
  %most.now = select i1 %greater, float %logit, float %most
  %best.now = select i1 %greater, i64 %i, i64 %best
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %words
  br i1 %more, label %next, label %end
end:
  ret i64 %best.now
}

; Bytes of memory that @choose needs.
define internal i64 @choice_bytes(i64 %words) nounwind {
  %bytes = mul i64 %words, 12
  ret i64 %bytes
}

; The next token; -1 if a logit is NaN. %memory: weights, then the heap.
define internal i64 @choose(ptr %generation, ptr %random, ptr %logits, i64 %words, ptr %memory) nounwind {
entry:
  %ranking = alloca %ranking, align 8
  %sum = alloca double, align 8
  %temperature.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_temperature
  %temperature = load double, ptr %temperature.at, align 8
  %top_k.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_top_k
  %top_k = load i64, ptr %top_k.at, align 8
  %top_p.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_top_p
  %top_p = load double, ptr %top_p.at, align 8
  %best = call i64 @greatest(ptr %logits, i64 %words)
  %bad = icmp slt i64 %best, 0
  %greedy = fcmp oeq double %temperature, 0.0
  %simple = or i1 %bad, %greedy
  br i1 %simple, label %take.best, label %look
take.best:
  ret i64 %best
look:
  %best.at = getelementptr float, ptr %logits, i64 %best
  %best.logit = load float, ptr %best.at, align 4
  %most = fpext float %best.logit to double
  %size = call double @llvm.fabs.f64(double %most)
  %infinite = fcmp oeq double %size, 0x7FF0000000000000
  br i1 %infinite, label %take.best, label %weigh
weigh:
  %heap = getelementptr double, ptr %memory, i64 %words
  store ptr %logits, ptr %ranking, align 8
  %heap.at = getelementptr %ranking, ptr %ranking, i64 0, i32 1
  store ptr %heap, ptr %heap.at, align 8
  %weights.at = getelementptr %ranking, ptr %ranking, i64 0, i32 2
  store ptr %memory, ptr %weights.at, align 8
  %words.at = getelementptr %ranking, ptr %ranking, i64 0, i32 3
  store i64 %words, ptr %words.at, align 8
  %taken.at = getelementptr %ranking, ptr %ranking, i64 0, i32 4
  store i64 0, ptr %taken.at, align 8
  br label %weight
weight:
  %i = phi i64 [ 0, %weigh ], [ %i.next, %weight ]
  %total.before = phi double [ 0.0, %weigh ], [ %total.all, %weight ]
  %logit.at = getelementptr float, ptr %logits, i64 %i
  %logit = load float, ptr %logit.at, align 4
  %wide = fpext float %logit to double
  %less = fsub double %wide, %most
  %scaled = fdiv double %less, %temperature
  %weight.value = call double @exponential(double %scaled)
  %weight.at = getelementptr double, ptr %memory, i64 %i
  store double %weight.value, ptr %weight.at, align 8
  %total.all = fadd double %total.before, %weight.value
  %place = getelementptr i32, ptr %heap, i64 %i
  %number = trunc i64 %i to i32
  store i32 %number, ptr %place, align 4
  %i.next = add i64 %i, 1
  %more.weights = icmp ult i64 %i.next, %words
  br i1 %more.weights, label %weight, label %heapify
heapify:
  %half = lshr i64 %words, 1
  br label %heap.next
heap.next:
  %from = phi i64 [ %half, %heapify ], [ %start, %heap.sift ]
  %parents = icmp ugt i64 %from, 0
  br i1 %parents, label %heap.sift, label %cut
heap.sift:
  %start = sub i64 %from, 1
  call void @sift(ptr %logits, ptr %heap, i64 %start, i64 %words)
  br label %heap.next
cut:
  %some = icmp ugt i64 %top_k, 0
  %fewer = icmp ult i64 %top_k, %words
  %by.count = and i1 %some, %fewer
  br i1 %by.count, label %cut.count, label %by.sum
cut.count:
  %ignored = call i64 @add_weights(ptr %ranking, i64 %top_k, double 0x7FF0000000000000, i1 true, ptr %sum)
  %total.count = load double, ptr %sum, align 8
  br label %by.sum
by.sum:
  %available = phi i64 [ %words, %cut ], [ %top_k, %cut.count ]
  %total = phi double [ %total.all, %cut ], [ %total.count, %cut.count ]
  %cuts = fcmp olt double %top_p, 1.0
  br i1 %cuts, label %cut.sum, label %draw
cut.sum:
  %limit = fmul double %top_p, %total
  %last = call i64 @add_weights(ptr %ranking, i64 %available, double %limit, i1 false, ptr %sum)
  %fewer.tokens = add i64 %last, 1
  %total.sum = load double, ptr %sum, align 8
  br label %draw
draw:
  %count = phi i64 [ %available, %by.sum ], [ %fewer.tokens, %cut.sum ]
  %whole = phi double [ %total, %by.sum ], [ %total.sum, %cut.sum ]
  %share = call double @draw_random(ptr %random)
  %drawn = fmul double %share, %whole
  %index = call i64 @add_weights(ptr %ranking, i64 %count, double %drawn, i1 true, ptr %sum)
  %token = call i64 @ranked(ptr %ranking, i64 %index)
  ret i64 %token
}
