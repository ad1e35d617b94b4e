; Runs the calls of a model for one request.
;
;   arena of a request:  buffers | turn | plan, if sizes vary | scratch of each thread | counters of a segment's calls
;   turn                 odd in every other inference, and iteration of a loop: which way to go through large weights;
;                        any first content will do
;   plan                 for each call: units, and how many pieces are worth a chunk
;
; Two counters a call, each a line: `ticket` hands out chunks, `done` counts those that are finished. Even threads draw
; from the first half, odd ones from the second, then from the other: so each works on the same part of the data from
; call to call. Short calls are cut into few chunks: who is ready first would take the last ones of the other half, whose
; data lie in another core's cache. All go forwards, as kernels expect that fetch what comes next. All go through the
; calls of a segment in order and leave a call when done = chunks. One that was descheduled before it drew a ticket
; delays nobody. Between segments only the caller works; a model whose sizes its inputs say is one segment.

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

@calls = external hidden constant [0 x ptr]  ; of the network: a function for each call
@swings = external hidden constant [0 x i8]  ; of the network: ways through large weights, see @goes_back

; Nanoseconds to profile[index], if there is one.
define internal void @stamp(ptr %profile, i64 %index) nounwind noinline {
entry:
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %take
take:
  %now = call i64 @now()
  %at = getelementptr i64, ptr %profile, i64 %index
  store i64 %now, ptr %at, align 8
  br label %done
done:
  ret void
}

; Starts the clock of call %index: its end lies as far behind as it has run so far, in earlier iterations of a loop.
define internal void @resume(ptr %profile, i64 %index) nounwind noinline {
entry:
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %take
take:
  %now = call i64 @now()
  %begin.at = getelementptr [2 x i64], ptr %profile, i64 %index, i64 0
  %end.at = getelementptr [2 x i64], ptr %profile, i64 %index, i64 1
  %begin = load i64, ptr %begin.at, align 8
  %end = load i64, ptr %end.at, align 8
  %spent = sub i64 %end, %begin
  %shifted = sub i64 %now, %spent
  store i64 %shifted, ptr %begin.at, align 8
  br label %done
done:
  ret void
}

; Calls whose weights are too large for the nearest cache, but are read once, go through them to and fro: where one
; ends, the next one over the same weights begins, and finds there what has stayed. @swings says for each call whether
; it does so (2), and how many such calls went over the same weights before (1: an odd number); a turn is an inference or
; an iteration of a loop.
define internal i1 @goes_back(ptr %job, i64 %i) nounwind {
  %swing.at = getelementptr i8, ptr @swings, i64 %i
  %swing.byte = load i8, ptr %swing.at, align 1
  %swing = zext i8 %swing.byte to i64
  %turn.at = getelementptr %job, ptr %job, i64 0, i32 $job_turn
  %turn = load i64, ptr %turn.at, align 8
  %odd = and i64 %turn, 1
  %way = xor i64 %swing, %odd
  %backwards = icmp eq i64 %way, 3
  ret i1 %backwards
}

define internal void @run_alone(ptr %job, i64 %first, i64 %end.call) nounwind {
entry:
  %request = load ptr, ptr %job, align 8
  %plan.at = getelementptr %job, ptr %job, i64 0, i32 $job_plan
  %plan = load ptr, ptr %plan.at, align 8
  %scratch.at = getelementptr %job, ptr %job, i64 0, i32 $job_scratch
  %scratch = load ptr, ptr %scratch.at, align 8
  %profile.at = getelementptr %request, ptr %request, i64 0, i32 $request_profile
  %profile = load ptr, ptr %profile.at, align 8
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i.next, %ran ]
  %more = icmp ult i64 %i, %end.call
  br i1 %more, label %call, label %done
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %run.at = getelementptr ptr, ptr @calls, i64 %i
  %run = load ptr, ptr %run.at, align 8
  %begin = mul i64 %i, 2
  %end = add i64 %begin, 1
  call void @resume(ptr %profile, i64 %i)
  %backwards = call i1 @goes_back(ptr %job, i64 %i)
  br i1 %backwards, label %back, label %forth
forth:
  call void %run(ptr %request, i64 0, i64 %units, ptr %scratch, i64 %i)
  br label %ran
back:
  %from = phi i64 [ %units, %call ], [ %unit, %unit.run ]
  %some = icmp sgt i64 %from, 0
  br i1 %some, label %unit.run, label %ran
unit.run:
  %unit = sub i64 %from, 1
  call void %run(ptr %request, i64 %unit, i64 %from, ptr %scratch, i64 %i)
  br label %back
ran:
  call void @stamp(ptr %profile, i64 %end)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; How many chunks nobody has drawn: of %chunks, less those from the front (low half) and from the back (high half).
define internal i64 @left(i64 %drawn, i64 %chunks) nounwind {
  %front = and i64 %drawn, $from_front
  %back = lshr i64 %drawn, 32
  %both = add i64 %front, %back
  %left = sub i64 %chunks, %both
  ret i64 %left
}

; The part of thread %index in a job; only thread 0, the caller, writes the profile.
define internal void @participate(ptr %job, i64 %index) nounwind {
entry:
  %request = load ptr, ptr %job, align 8
  %plan.at = getelementptr %job, ptr %job, i64 0, i32 $job_plan
  %plan = load ptr, ptr %plan.at, align 8
  %scratches.at = getelementptr %job, ptr %job, i64 0, i32 $job_scratch
  %scratches = load ptr, ptr %scratches.at, align 8
  %counters.at = getelementptr %job, ptr %job, i64 0, i32 $job_counters
  %counters = load ptr, ptr %counters.at, align 8
  %threads.at = getelementptr %job, ptr %job, i64 0, i32 $job_threads
  %threads = load i64, ptr %threads.at, align 8
  %worth.fine = mul i64 %threads, $pieces_of_fine_chunk
  %scratch.bytes.at = getelementptr %job, ptr %job, i64 0, i32 $job_scratch_bytes
  %scratch.bytes = load i64, ptr %scratch.bytes.at, align 8
  %scratch.offset = mul i64 %index, %scratch.bytes
  %scratch = getelementptr i8, ptr %scratches, i64 %scratch.offset
  %profile.at = getelementptr %request, ptr %request, i64 0, i32 $request_profile
  %profile.any = load ptr, ptr %profile.at, align 8
  %caller = icmp eq i64 %index, 0
  %profile = select i1 %caller, ptr %profile.any, ptr null
  %odd = and i64 %index, 1
  %even = icmp eq i64 %odd, 0
  %one = select i1 %even, i64 1, i64 $from_back
  %first.at = getelementptr %job, ptr %job, i64 0, i32 $job_first_call
  %first = load i64, ptr %first.at, align 8
  %last.at = getelementptr %job, ptr %job, i64 0, i32 $job_last_call
  %last = load i64, ptr %last.at, align 8
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i.next, %finished ]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %call, label %done
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %pieces.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 1
  %pieces = load i64, ptr %pieces.at, align 8
  %fine = udiv i64 %pieces, %worth.fine
  %enough = call i64 @llvm.smax.i64(i64 %fine, i64 $least_chunks_per_thread)
  %each = call i64 @llvm.smin.i64(i64 %enough, i64 $most_chunks_per_thread)
  %wanted = mul i64 %each, %threads
  %worth = call i64 @llvm.smin.i64(i64 %pieces, i64 %wanted)
  %chunks = call i64 @llvm.smin.i64(i64 %worth, i64 %units)
  %run.at = getelementptr ptr, ptr @calls, i64 %i
  %run = load ptr, ptr %run.at, align 8
  %place = sub i64 %i, %first
  %ticket = getelementptr [2 x [64 x i8]], ptr %counters, i64 %place
  %done.at = getelementptr [2 x [64 x i8]], ptr %counters, i64 %place, i64 1
  %sleepers = getelementptr i8, ptr %done.at, i64 8
  %begin.stamp = mul i64 %i, 2
  %end.stamp = add i64 %begin.stamp, 1
  call void @resume(ptr %profile, i64 %i)
  %backwards = call i1 @goes_back(ptr %job, i64 %i)
  %half = lshr i64 %chunks, 1
  %both.halves = add i64 %chunks, %half
  br label %look
look:
  ; a plain look first: one who comes late passes finished calls without taking their lines from others
  %drawn = load atomic i64, ptr %ticket monotonic, align 8
  %left = call i64 @left(i64 %drawn, i64 %chunks)
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %draw, label %wait
draw:
  %before = atomicrmw add ptr %ticket, i64 %one monotonic
  %left.mine = call i64 @left(i64 %before, i64 %chunks)
  %mine = icmp sgt i64 %left.mine, 0
  br i1 %mine, label %chunk.run, label %wait
chunk.run:
  %front = and i64 %before, $from_front
  %end.left = add i64 %front, %left.mine
  %back = sub i64 %end.left, 1
  %near = select i1 %even, i64 %front, i64 %back
  ; each half has threads of its own: all go forwards through theirs, or all backwards
  %low.half = icmp slt i64 %near, %half
  %mirror = select i1 %low.half, i64 %half, i64 %both.halves
  %after = sub i64 %mirror, %near
  %other = sub i64 %after, 1
  %turned = xor i1 %backwards, %low.half
  %chunk = select i1 %turned, i64 %near, i64 %other
  %chunk.next = add i64 %chunk, 1
  %low = mul i64 %chunk, %units
  %high = mul i64 %chunk.next, %units
  %begin = udiv i64 %low, %chunks
  %end = udiv i64 %high, %chunks
  call void %run(ptr %request, i64 %begin, i64 %end, ptr %scratch, i64 %i)
  %counted = atomicrmw add ptr %done.at, i64 1 seq_cst
  %last.chunk = sub i64 %chunks, 1
  %final = icmp eq i64 %counted, %last.chunk
  br i1 %final, label %tell, label %look
tell:
  call void @rouse(ptr %done.at, ptr %sleepers)
  br label %finished
wait:
  call void @await(ptr %done.at, i64 %chunks, ptr %sleepers)
  br label %finished
finished:
  call void @stamp(ptr %profile, i64 %end.stamp)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; How many pieces the calls have that several threads can share.
define internal i64 @shared_pieces(ptr %plan, i64 %first, i64 %last) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i.next, %call ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %call ]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %call, label %done
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %pieces.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 1
  %pieces = load i64, ptr %pieces.at, align 8
  %several = icmp sgt i64 %units, 1
  %counted = select i1 %several, i64 %pieces, i64 0
  %sum.next = add i64 %sum, %counted
  %i.next = add i64 %i, 1
  br label %next
done:
  ret i64 %sum
}

; The calls of a segment, on all threads if that pays.
define hidden void @run_calls(ptr %job, i64 %first, i64 %last) nounwind {
entry:
  %plan.at = getelementptr %job, ptr %job, i64 0, i32 $job_plan
  %plan = load ptr, ptr %plan.at, align 8
  %threads.at = getelementptr %job, ptr %job, i64 0, i32 $job_threads
  %threads = load i64, ptr %threads.at, align 8
  %pool.at = getelementptr %job, ptr %job, i64 0, i32 $job_pool
  %pool = load ptr, ptr %pool.at, align 8
  %several = icmp sgt i64 %threads, 1
  %given = icmp ne ptr %pool, null
  %possible = and i1 %several, %given
  br i1 %possible, label %weigh, label %alone
weigh:
  %pieces = call i64 @shared_pieces(ptr %plan, i64 %first, i64 %last)
  %enough = icmp sge i64 %pieces, $pieces_worth_sharing
  br i1 %enough, label %choose, label %alone
alone:
  call void @run_alone(ptr %job, i64 %first, i64 %last)
  ret void
choose:
  %begin = call i64 @now()
  %share = call i1 @next_shared(i64 %pieces)
  br i1 %share, label %publish, label %timed
timed:
  call void @run_alone(ptr %job, i64 %first, i64 %last)
  call void @note(i64 %begin, i64 %pieces, i1 false, i1 true)
  ret void
publish:
  ; nobody is in an earlier segment any more, nor in an earlier run of this one
  %counters.at = getelementptr %job, ptr %job, i64 0, i32 $job_counters
  %counters = load ptr, ptr %counters.at, align 8
  %count = sub i64 %last, %first
  %bytes = mul i64 %count, 128
  %ignored = call ptr @memset(ptr %counters, i32 0, i64 %bytes)
  %first.at = getelementptr %job, ptr %job, i64 0, i32 $job_first_call
  store i64 %first, ptr %first.at, align 8
  %last.at = getelementptr %job, ptr %job, i64 0, i32 $job_last_call
  store i64 %last, ptr %last.at, align 8
  %awake = call i1 @pool_run(ptr %pool, ptr @participate, ptr %job, i64 %threads)
  call void @note(i64 %begin, i64 %pieces, i1 true, i1 %awake)
  ret void
}
