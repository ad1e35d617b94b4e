; Runs the calls of one model for one request.
;
;   arena of a request:  buffers | plan, if sizes vary | scratch of each thread | counters, two lines for each call
;   plan                 for each call: units, and how many pieces are worth a chunk
;
; Two counters a call: `ticket` hands out chunks, `done` counts those that are finished. All threads go through the
; calls in order and leave a call when done = chunks. One that was descheduled before it drew a ticket delays nobody.

%request = type { ptr, ptr, ptr, ptr, ptr, ptr, i64, ptr }  ; runtime.abi.Request
%job = type { ptr, ptr, ptr, ptr, i64 }                     ; request, plan, scratch, counters, threads
%timespec = type { i64, i64 }

declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

; Nanoseconds to profile[index], if there is one.
define internal void @stamp(ptr %profile, i64 %index) nounwind noinline {
entry:
  %time = alloca %timespec, align 8
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %take
take:
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %at = getelementptr i64, ptr %profile, i64 %index
  store i64 %now, ptr %at, align 8
  br label %done
done:
  ret void
}

define internal void @run_alone(ptr %request, ptr %plan, ptr %scratch) nounwind {
entry:
  %profile.at = getelementptr %request, ptr %request, i64 0, i32 7
  %profile = load ptr, ptr %profile.at, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %call ]
  %more = icmp ult i64 %i, $calls
  br i1 %more, label %call, label %done
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %run.at = getelementptr ptr, ptr @calls, i64 %i
  %run = load ptr, ptr %run.at, align 8
  %begin = mul i64 %i, 2
  %end = add i64 %begin, 1
  call void @stamp(ptr %profile, i64 %begin)
  call void %run(ptr %request, i64 0, i64 %units, ptr %scratch)
  call void @stamp(ptr %profile, i64 %end)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; The part of thread %index in a job; only thread 0, the caller, writes the profile.
define internal void @participate(ptr %job, i64 %index) nounwind {
entry:
  %request = load ptr, ptr %job, align 8
  %plan.at = getelementptr %job, ptr %job, i64 0, i32 1
  %plan = load ptr, ptr %plan.at, align 8
  %scratches.at = getelementptr %job, ptr %job, i64 0, i32 2
  %scratches = load ptr, ptr %scratches.at, align 8
  %counters.at = getelementptr %job, ptr %job, i64 0, i32 3
  %counters = load ptr, ptr %counters.at, align 8
  %threads.at = getelementptr %job, ptr %job, i64 0, i32 4
  %threads = load i64, ptr %threads.at, align 8
  %finest = mul i64 %threads, $chunks_per_thread
  %scratch.offset = mul i64 %index, $scratch
  %scratch = getelementptr i8, ptr %scratches, i64 %scratch.offset
  %profile.at = getelementptr %request, ptr %request, i64 0, i32 7
  %profile.any = load ptr, ptr %profile.at, align 8
  %caller = icmp eq i64 %index, 0
  %profile = select i1 %caller, ptr %profile.any, ptr null
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %finished ]
  %more = icmp ult i64 %i, $calls
  br i1 %more, label %call, label %done
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %pieces.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 1
  %pieces = load i64, ptr %pieces.at, align 8
  %coarse = call i64 @llvm.smin.i64(i64 %pieces, i64 %finest)
  %chunks = call i64 @llvm.smin.i64(i64 %coarse, i64 %units)
  %run.at = getelementptr ptr, ptr @calls, i64 %i
  %run = load ptr, ptr %run.at, align 8
  %ticket = getelementptr [2 x [64 x i8]], ptr %counters, i64 %i
  %done.at = getelementptr [2 x [64 x i8]], ptr %counters, i64 %i, i64 1
  %begin.stamp = mul i64 %i, 2
  %end.stamp = add i64 %begin.stamp, 1
  call void @stamp(ptr %profile, i64 %begin.stamp)
  br label %look
look:
  ; a plain look first: one who comes late passes finished calls without taking their lines from others
  %drawn = load atomic i64, ptr %ticket monotonic, align 8
  %over = icmp sge i64 %drawn, %chunks
  br i1 %over, label %wait, label %draw
draw:
  %chunk = atomicrmw add ptr %ticket, i64 1 monotonic
  %mine = icmp slt i64 %chunk, %chunks
  br i1 %mine, label %chunk.run, label %wait
chunk.run:
  %chunk.next = add i64 %chunk, 1
  %low = mul i64 %chunk, %units
  %high = mul i64 %chunk.next, %units
  %begin = udiv i64 %low, %chunks
  %end = udiv i64 %high, %chunks
  call void %run(ptr %request, i64 %begin, i64 %end, ptr %scratch)
  %counted = atomicrmw add ptr %done.at, i64 1 release
  br label %look
wait:
  %count = phi i32 [ 0, %look ], [ 0, %draw ], [ %count.next, %again ]
  %ready = load atomic i64, ptr %done.at acquire, align 8
  %complete = icmp sge i64 %ready, %chunks
  br i1 %complete, label %finished, label %again
again:
  %count.next = call i32 @relax(i32 %count)
  br label %wait
finished:
  call void @stamp(ptr %profile, i64 %end.stamp)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

; Whether there are enough pieces beyond one a call to pay for waking workers.
define internal i1 @worth_sharing(ptr %plan) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %call ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %call ]
  %enough = icmp sge i64 %sum, $pieces_worth_sharing
  br i1 %enough, label %yes, label %look
look:
  %more = icmp ult i64 %i, $calls
  br i1 %more, label %call, label %no
call:
  %units.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 0
  %units = load i64, ptr %units.at, align 8
  %pieces.at = getelementptr [2 x i64], ptr %plan, i64 %i, i64 1
  %pieces = load i64, ptr %pieces.at, align 8
  %chunks = call i64 @llvm.smin.i64(i64 %pieces, i64 %units)
  %some = call i64 @llvm.smax.i64(i64 %chunks, i64 1)
  %extra = sub i64 %some, 1
  %sum.next = add i64 %sum, %extra
  %i.next = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i64 @arena_size(ptr %symbols, i64 %threads) nounwind {
  %buffers = call i64 @buffer_bytes(ptr %symbols)
  %scratches = mul i64 %threads, $scratch
  %fixed = add i64 %buffers, $fixed_bytes
  %size = add i64 %fixed, %scratches
  ret i64 %size
}

define internal i32 @infer(ptr %request) nounwind {
entry:
  %job = alloca %job, align 8
  %symbols.at = getelementptr %request, ptr %request, i64 0, i32 2
  %symbols = load ptr, ptr %symbols.at, align 8
  %arena.at = getelementptr %request, ptr %request, i64 0, i32 3
  %arena = load ptr, ptr %arena.at, align 8
  %pool.at = getelementptr %request, ptr %request, i64 0, i32 5
  %pool = load ptr, ptr %pool.at, align 8
  %threads.at = getelementptr %request, ptr %request, i64 0, i32 6
  %threads = load i64, ptr %threads.at, align 8
  %address = ptrtoint ptr %arena to i64
  %low = and i64 %address, 63
  %askew = icmp ne i64 %low, 0
  %null = icmp eq ptr %arena, null
  %misplaced = or i1 %askew, %null
  br i1 %misplaced, label %bad.arena, label %check
bad.arena:
  ret i32 $error_arena
check:
  %fit = call i1 @symbols_fit(ptr %symbols)
  br i1 %fit, label %place, label %bad.symbol
bad.symbol:
  ret i32 $error_symbol
place:
  %buffers = call i64 @buffer_bytes(ptr %symbols)
  %plan.area = getelementptr i8, ptr %arena, i64 %buffers
  %plan = call ptr @make_plan(ptr %symbols, ptr %plan.area)
  %scratch = getelementptr i8, ptr %plan.area, i64 $plan_bytes
  %several = icmp sgt i64 %threads, 1
  %given = icmp ne ptr %pool, null
  %possible = and i1 %several, %given
  br i1 %possible, label %weigh, label %alone
weigh:
  %worth = call i1 @worth_sharing(ptr %plan)
  br i1 %worth, label %publish, label %alone
alone:
  call void @run_alone(ptr %request, ptr %plan, ptr %scratch)
  ret i32 0
publish:
  %scratches = mul i64 %threads, $scratch
  %counters = getelementptr i8, ptr %scratch, i64 %scratches
  %ignored = call ptr @memset(ptr %counters, i32 0, i64 $counter_bytes)
  %job.plan = getelementptr %job, ptr %job, i64 0, i32 1
  %job.scratch = getelementptr %job, ptr %job, i64 0, i32 2
  %job.counters = getelementptr %job, ptr %job, i64 0, i32 3
  %job.threads = getelementptr %job, ptr %job, i64 0, i32 4
  store ptr %request, ptr %job, align 8
  store ptr %plan, ptr %job.plan, align 8
  store ptr %scratch, ptr %job.scratch, align 8
  store ptr %counters, ptr %job.counters, align 8
  store i64 %threads, ptr %job.threads, align 8
  call void @pool_run(ptr %pool, ptr @participate, ptr %job, i64 %threads)
  ret i32 0
}

define internal ptr @error_text(i32 %code) nounwind {
  %known = icmp ult i32 %code, $error_unknown
  %index = select i1 %known, i32 %code, i32 $error_unknown
  %at = getelementptr ptr, ptr @error_texts, i32 %index
  %text = load ptr, ptr %at, align 8
  ret ptr %text
}

define ptr @$query(i32 %version) nounwind {
  %known = icmp eq i32 %version, $abi_version
  %table = select i1 %known, ptr @table, ptr null
  ret ptr %table
}
