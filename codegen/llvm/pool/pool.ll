; Threads that work on the requests of any number of models of one ABI version.
;
;   generation   +1 with every job; idle workers sleep on it
;   slot.state   0 free, TAKEN being set up, TAKEN + OPEN + n: n workers are inside, more may come
;                TAKEN + n: the job is finished, n workers are still on their way out
;
;   request                                worker
;     slot: free -> TAKEN -> + OPEN          look at the generation, then at all slots
;     generation += 1, wake                  open: state += 1
;     work                                     work
;     state -= OPEN                            state -= OPEN, then -= 1
;     wait for n = 0, slot: free             none open: spin, then sleep until the generation changes
;
; Whoever finishes a job clears OPEN, so that nobody enters a finished one; it is freed only when nobody is inside,
; and so neither a request's counters nor its stack are touched after it returned.

%slot = type { i64, ptr, ptr, i64, i32, [7 x i32] }              ; state, run, argument, threads, sleepers
%seat = type { i64, ptr, i64, i32, i32 }                         ; pthread_t, pool, index: argument of a worker; place
%pool = type { i32, [15 x i32], i32, [15 x i32],                 ; generation, sleepers: on lines of their own
               i32, i32, i32, i32, ptr, [10 x i32],              ; threads, started, lock (pid of the holder), pid, worker
               [$jobs x %slot], [$max_threads x %seat] }

; The holder's pid in the lock tells a child that the holder lives in its parent only.
define internal void @lock(ptr %pool) nounwind {
entry:
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 $pool_lock
  %pid = call i32 @getpid()
  br label %try
try:
  %found = load atomic i32, ptr %lock monotonic, align 4
  %held = icmp eq i32 %found, %pid
  br i1 %held, label %wait, label %take
take:
  %pair = cmpxchg ptr %lock, i32 %found, i32 %pid acquire monotonic
  %taken = extractvalue { i32, i1 } %pair, 1
  br i1 %taken, label %done, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %try
done:
  ret void
}

define internal void @unlock(ptr %pool) nounwind {
  %lock = getelementptr %pool, ptr %pool, i64 0, i32 $pool_lock
  store atomic i32 0, ptr %lock release, align 4
  ret void
}

; A forked child has the pool's memory but not its threads: it starts afresh.
define internal void @adopt(ptr %pool) nounwind {
entry:
  %owner = getelementptr %pool, ptr %pool, i64 0, i32 $pool_owner
  %pid = call i32 @getpid()
  %first = load atomic i32, ptr %owner acquire, align 4
  %same = icmp eq i32 %first, %pid
  br i1 %same, label %done, label %locked
locked:
  call void @lock(ptr %pool)
  %second = load atomic i32, ptr %owner monotonic, align 4
  %late = icmp eq i32 %second, %pid
  br i1 %late, label %unlock, label %reset
reset:
  %sleepers = getelementptr %pool, ptr %pool, i64 0, i32 $pool_sleepers
  store atomic i32 0, ptr %sleepers monotonic, align 4
  %started = getelementptr %pool, ptr %pool, i64 0, i32 $pool_started
  store atomic i32 0, ptr %started monotonic, align 4
  %slots = getelementptr %pool, ptr %pool, i64 0, i32 $pool_slots
  %ignored = call ptr @memset(ptr %slots, i32 0, i64 ptrtoint (ptr getelementptr ([$jobs x %slot], ptr null, i64 1) to i64))
  store atomic i32 %pid, ptr %owner release, align 4
  br label %unlock
unlock:
  call void @unlock(ptr %pool)
  br label %done
done:
  ret void
}

define internal void @wake(ptr %pool) nounwind {
  %old = atomicrmw add ptr %pool, i32 1 seq_cst
  %sleepers = getelementptr %pool, ptr %pool, i64 0, i32 $pool_sleepers
  call void @rouse(ptr %pool, ptr %sleepers)
  ret void
}

; Worker %index, until the generation is no longer %seen.
define internal void @idle(ptr %pool, i64 %index, i32 %seen) nounwind {
entry:
  %since = call i64 @now()
  br label %look
look:
  %count = phi i32 [ 0, %entry ], [ %next, %wait ]
  %next = add i32 %count, 1
  %now = load atomic i32, ptr %pool acquire, align 4
  %changed = icmp ne i32 %now, %seen
  br i1 %changed, label %done, label %wait
wait:
  %more = call i1 @spin(i64 %since, i32 %count)
  br i1 %more, label %look, label %rest
rest:
  %awake = call i1 @settle(ptr %pool, i64 %index, i64 0)
  %sleepers = getelementptr %pool, ptr %pool, i64 0, i32 $pool_sleepers
  call void @sleep(ptr %pool, i32 %seen, ptr %sleepers)
  %place.at = call ptr @place_of(ptr %pool, i64 %index)
  store atomic i32 0, ptr %place.at monotonic, align 4
  br label %done
done:
  ret void
}

; The pool outlives this, whoever has the slot by then.
define internal void @leave(ptr %slot) nounwind {
  %old = atomicrmw sub ptr %slot, i64 1 seq_cst
  %sleepers = getelementptr %slot, ptr %slot, i64 0, i32 $slot_sleepers
  call void @rouse(ptr %slot, ptr %sleepers)
  ret void
}

; Work on the first open job that has room for this worker; false if there is none.
define internal i1 @work(ptr %pool, i64 %index) nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %slot = getelementptr %pool, ptr %pool, i64 0, i32 $pool_slots, i64 %i
  %run.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_run
  %argument.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_argument
  %threads.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_threads
  br label %look
look:
  %state = load atomic i64, ptr %slot monotonic, align 8
  %bit = and i64 %state, $open
  %open = icmp ne i64 %bit, 0
  br i1 %open, label %room, label %next
room:
  %seats = load atomic i64, ptr %threads.at monotonic, align 8
  %fits = icmp slt i64 %index, %seats
  br i1 %fits, label %enter, label %next
enter:
  %inside = add i64 %state, 1
  %pair = cmpxchg ptr %slot, i64 %state, i64 %inside acquire monotonic
  %entered = extractvalue { i64, i1 } %pair, 1
  br i1 %entered, label %check, label %look
check:
  ; the slot may have been freed and taken by another request since its room was looked at
  %seats.now = load atomic i64, ptr %threads.at monotonic, align 8
  %fits.now = icmp slt i64 %index, %seats.now
  br i1 %fits.now, label %join, label %leave
leave:
  call void @leave(ptr %slot)
  br label %next
next:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $jobs
  br i1 %more, label %each, label %none
none:
  ret i1 false
join:
  %run = load ptr, ptr %run.at, align 8
  %argument = load ptr, ptr %argument.at, align 8
  call void %run(ptr %argument, i64 %index)
  %closed = atomicrmw and ptr %slot, i64 $not_open release
  call void @leave(ptr %slot)
  ret i1 true
}

define internal ptr @worker(ptr %seat) nounwind {
entry:
  ; signals are for the threads of the application
  %mask = alloca [$signal_set_bytes x i8], align 16
  %filled = call i32 @sigfillset(ptr %mask)
  %masked = call i32 @pthread_sigmask(i32 $set_mask, ptr %mask, ptr null)
  %pool.at = getelementptr %seat, ptr %seat, i64 0, i32 $seat_pool
  %pool = load ptr, ptr %pool.at, align 8
  %index.at = getelementptr %seat, ptr %seat, i64 0, i32 $seat_index
  %index = load i64, ptr %index.at, align 8
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_threads
  br label %look
look:
  ; before the slots: a job that is published after they were looked at changes it
  %seen = load atomic i32, ptr %pool acquire, align 4
  %worked = call i1 @work(ptr %pool, i64 %index)
  br i1 %worked, label %look, label %check
check:
  %threads32 = load atomic i32, ptr %threads.at acquire, align 4
  %threads = zext i32 %threads32 to i64
  %stay = icmp ult i64 %index, %threads
  br i1 %stay, label %wait, label %exit
wait:
  call void @idle(ptr %pool, i64 %index, i32 %seen)
  br label %look
exit:
  ret ptr null
}

; Workers come with the first request that can use them. Where the system has no more threads, fewer do.
define internal void @start(ptr %pool, i64 %wanted) nounwind {
entry:
  call void @adopt(ptr %pool)
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_threads
  %started.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_started
  %threads32 = load atomic i32, ptr %threads.at monotonic, align 4
  %threads = zext i32 %threads32 to i64
  %few = icmp slt i64 %wanted, %threads
  %most = select i1 %few, i64 %wanted, i64 %threads
  %before32 = load atomic i32, ptr %started.at acquire, align 4
  %before = zext i32 %before32 to i64
  %first = add i64 %before, 1
  %enough = icmp sge i64 %first, %most
  br i1 %enough, label %done, label %locked
locked:
  call void @lock(ptr %pool)
  br label %next
next:
  %now32 = load atomic i32, ptr %started.at monotonic, align 4
  %limit32 = load atomic i32, ptr %threads.at monotonic, align 4
  %index32 = add i32 %now32, 1
  %index = zext i32 %index32 to i64
  %limit = zext i32 %limit32 to i64
  %wants = icmp slt i64 %index, %most
  %may = icmp slt i64 %index, %limit
  %go = and i1 %wants, %may
  br i1 %go, label %create, label %unlock
create:
  %seat = getelementptr %pool, ptr %pool, i64 0, i32 $pool_seats, i64 %index
  %seat.pool = getelementptr %seat, ptr %seat, i64 0, i32 $seat_pool
  %seat.index = getelementptr %seat, ptr %seat, i64 0, i32 $seat_index
  ; the code of the model that made the pool: another one that uses it may be unloaded earlier
  %worker.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_worker
  %worker = load ptr, ptr %worker.at, align 8
  store ptr %pool, ptr %seat.pool, align 8
  store i64 %index, ptr %seat.index, align 8
  ; of a worker that this process left to its parent, or that ended
  %place.at = call ptr @place_of(ptr %pool, i64 %index)
  store atomic i32 0, ptr %place.at monotonic, align 4
  %failed = call i32 @pthread_create(ptr %seat, ptr null, ptr %worker, ptr %seat)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %created, label %refused
created:
  store atomic i32 %index32, ptr %started.at release, align 4
  br label %next
refused:
  store atomic i32 %index32, ptr %threads.at release, align 4
  br label %unlock
unlock:
  call void @unlock(ptr %pool)
  br label %done
done:
  ret void
}

; run(argument, 0) here, and run(argument, index) in workers that are idle; returns when all have left it. Whether all
; workers were awake when it began.
define internal i1 @pool_run(ptr %pool, ptr %run, ptr %argument, i64 %threads) nounwind {
entry:
  call void @start(ptr %pool, i64 %threads)
  br label %find
find:
  %i = phi i64 [ 0, %entry ], [ %i.next, %busy ]
  %slot = getelementptr %pool, ptr %pool, i64 0, i32 $pool_slots, i64 %i
  %pair = cmpxchg ptr %slot, i64 0, i64 $taken acquire monotonic
  %taken = extractvalue { i64, i1 } %pair, 1
  br i1 %taken, label %publish, label %busy
busy:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $jobs
  br i1 %more, label %find, label %alone
alone:
  call void %run(ptr %argument, i64 0)
  ret i1 false
publish:
  %run.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_run
  %argument.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_argument
  %threads.at = getelementptr %slot, ptr %slot, i64 0, i32 $slot_threads
  store ptr %run, ptr %run.at, align 8
  store ptr %argument, ptr %argument.at, align 8
  store atomic i64 %threads, ptr %threads.at monotonic, align 8
  %awake = call i1 @settle(ptr %pool, i64 0, i64 %threads)
  store atomic i64 $taken_and_open, ptr %slot release, align 8
  call void @wake(ptr %pool)
  call void %run(ptr %argument, i64 0)
  %closed = atomicrmw and ptr %slot, i64 $not_open acq_rel
  %sleepers = getelementptr %slot, ptr %slot, i64 0, i32 $slot_sleepers
  call void @await(ptr %slot, i64 $taken, ptr %sleepers)
  store atomic i64 0, ptr %slot release, align 8
  ret i1 %awake
}

define internal i32 @bounded(i64 %threads) nounwind {
  %low = call i64 @llvm.smax.i64(i64 %threads, i64 1)
  %both = call i64 @llvm.smin.i64(i64 %low, i64 $max_threads)
  %narrow = trunc i64 %both to i32
  ret i32 %narrow
}

define hidden ptr @pool_create(i64 %threads) nounwind {
entry:
  %size = add i64 ptrtoint (ptr getelementptr (%pool, ptr null, i64 1) to i64), 63
  %whole = and i64 %size, -64
  %pool = call ptr @aligned_alloc(i64 64, i64 %whole)
  %failed = icmp eq ptr %pool, null
  br i1 %failed, label %done, label %fill
fill:
  %ignored = call ptr @memset(ptr %pool, i32 0, i64 %whole)
  %count = call i32 @bounded(i64 %threads)
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_threads
  store i32 %count, ptr %threads.at, align 4
  %worker.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_worker
  store ptr @worker, ptr %worker.at, align 8
  %pid = call i32 @getpid()
  %pid.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_owner
  store i32 %pid, ptr %pid.at, align 4
  br label %done
done:
  ret ptr %pool
}

; Workers beyond the new size finish their job and end before it returns.
define hidden void @pool_resize(ptr %pool, i64 %threads) nounwind {
entry:
  call void @adopt(ptr %pool)
  call void @lock(ptr %pool)
  %count = call i32 @bounded(i64 %threads)
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_threads
  %started.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_started
  store atomic i32 %count, ptr %threads.at release, align 4
  call void @wake(ptr %pool)
  br label %next
next:
  %last = load atomic i32, ptr %started.at monotonic, align 4
  %stays = icmp ult i32 %last, %count
  br i1 %stays, label %done, label %join
join:
  %index = zext i32 %last to i64
  %seat = getelementptr %pool, ptr %pool, i64 0, i32 $pool_seats, i64 %index
  %thread = load i64, ptr %seat, align 8
  %ignored = call i32 @pthread_join(i64 %thread, ptr null)
  %fewer = sub i32 %last, 1
  store atomic i32 %fewer, ptr %started.at release, align 4
  br label %next
done:
  call void @unlock(ptr %pool)
  ret void
}

define hidden void @pool_destroy(ptr %pool) nounwind {
entry:
  %none = icmp eq ptr %pool, null
  br i1 %none, label %done, label %stop
stop:
  call void @pool_resize(ptr %pool, i64 1)
  call void @free(ptr %pool)
  br label %done
done:
  ret void
}
