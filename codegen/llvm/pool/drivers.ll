; The entry points of one model: an inference, and what a caller must know before it.

; No call has run yet.
define internal void @reset_profile(ptr %request) nounwind noinline {
entry:
  %profile.at = getelementptr %request, ptr %request, i64 0, i32 $request_profile
  %profile = load ptr, ptr %profile.at, align 8
  %off = icmp eq ptr %profile, null
  br i1 %off, label %done, label %reset
reset:
  %ignored = call ptr @memset(ptr %profile, i32 0, i64 $profile_bytes)
  br label %done
done:
  ret void
}

define internal i64 @arena_size(ptr %symbols, i64 %threads) nounwind {
  %buffers = call i64 @buffer_bytes(ptr %symbols)
  %scratch = call i64 @scratch_bytes(ptr %symbols)
  %scratches = mul i64 %threads, %scratch
  %fixed = add i64 %buffers, $fixed_bytes
  %size = add i64 %fixed, %scratches
  ret i64 %size
}

define internal i32 @infer(ptr %request) nounwind {
entry:
  %job = alloca %job, align 8
  %symbols.at = getelementptr %request, ptr %request, i64 0, i32 $request_symbols
  %symbols = load ptr, ptr %symbols.at, align 8
  %arena.at = getelementptr %request, ptr %request, i64 0, i32 $request_arena
  %arena = load ptr, ptr %arena.at, align 8
  %pool.at = getelementptr %request, ptr %request, i64 0, i32 $request_pool
  %pool = load ptr, ptr %pool.at, align 8
  %threads.at = getelementptr %request, ptr %request, i64 0, i32 $request_threads
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
  call void @reset_profile(ptr %request)
  %buffers = call i64 @buffer_bytes(ptr %symbols)
  %turn.at = getelementptr i8, ptr %arena, i64 %buffers
  %turn.before = load i64, ptr %turn.at, align 8
  %turn = add i64 %turn.before, 1
  store i64 %turn, ptr %turn.at, align 8
  %plan.area = getelementptr i8, ptr %turn.at, i64 $turn_bytes
  %plan = call ptr @make_plan(ptr %symbols, ptr %plan.area)
  %scratch = getelementptr i8, ptr %plan.area, i64 $plan_bytes
  %scratch.bytes = call i64 @scratch_bytes(ptr %symbols)
  %scratches = mul i64 %threads, %scratch.bytes
  %counters = getelementptr i8, ptr %scratch, i64 %scratches
  %job.plan = getelementptr %job, ptr %job, i64 0, i32 $job_plan
  %job.scratch = getelementptr %job, ptr %job, i64 0, i32 $job_scratch
  %job.counters = getelementptr %job, ptr %job, i64 0, i32 $job_counters
  %job.threads = getelementptr %job, ptr %job, i64 0, i32 $job_threads
  %job.pool = getelementptr %job, ptr %job, i64 0, i32 $job_pool
  store ptr %request, ptr %job, align 8
  store ptr %plan, ptr %job.plan, align 8
  store ptr %scratch, ptr %job.scratch, align 8
  store ptr %counters, ptr %job.counters, align 8
  store i64 %threads, ptr %job.threads, align 8
  store ptr %pool, ptr %job.pool, align 8
  %job.turn = getelementptr %job, ptr %job, i64 0, i32 $job_turn
  store i64 %turn, ptr %job.turn, align 8
  %job.scratch.bytes = getelementptr %job, ptr %job, i64 0, i32 $job_scratch_bytes
  store i64 %scratch.bytes, ptr %job.scratch.bytes, align 8
  %code = call i32 @run_all(ptr %job)
  ret i32 %code
}

define internal ptr @error_text(i32 %code) nounwind {
  %known = icmp ult i32 %code, $error_count
  %index = select i1 %known, i32 %code, i32 $error_unknown
  %at = getelementptr ptr, ptr @error_texts, i32 %index
  %text = load ptr, ptr %at, align 8
  ret ptr %text
}
