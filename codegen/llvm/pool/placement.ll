; Threads of a pool on processors of their own. The kernel wakes a thread where it slept if that processor is idle, but
; looks for another one only where not all have been busy lately: a worker that slept where its caller runs now would
; wait for the caller, and so from job to job. So a worker looks for a processor before it sleeps, a caller before it
; wakes workers. Nobody stays bound to what it found.
;
;   place   processor + 1; 0: unknown, or a worker that is awake

$here

define internal ptr @place_of(ptr %pool, i64 %index) nounwind {
  %at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_seats, i64 %index, i32 $seat_place
  ret ptr %at
}

; The places of all seats as a set of processors; whether one other than %index has the place %here, and whether no worker
; below %threads sleeps.
define internal { i1, i1 } @survey(ptr %pool, i64 %index, i32 %here, i64 %threads, ptr %set) nounwind {
entry:
  %cleared = call ptr @memset(ptr %set, i32 0, i64 $cpu_bytes)
  %started.at = getelementptr %pool, ptr %pool, i64 0, i32 $pool_started
  %started32 = load atomic i32, ptr %started.at monotonic, align 4
  %started = zext i32 %started32 to i64
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %clash = phi i1 [ false, %entry ], [ %clash.next, %next ]
  %awake = phi i1 [ true, %entry ], [ %awake.next, %next ]
  %at = call ptr @place_of(ptr %pool, i64 %i)
  %found = load atomic i32, ptr %at monotonic, align 4
  %self = icmp eq i64 %i, %index
  %other = xor i1 %self, true
  %place = select i1 %self, i32 %here, i32 %found
  %none = icmp eq i32 %place, 0
  %same = icmp eq i32 %place, %here
  %bad = and i1 %same, %other
  %clash.next = or i1 %clash, %bad
  %near = icmp ult i64 %i, %threads
  %counts = and i1 %near, %other
  %ignored = xor i1 %counts, true
  %fine = or i1 %ignored, %none
  %awake.next = and i1 %awake, %fine
  br i1 %none, label %next, label %add
add:
  %cpu = sub i32 %place, 1
  %word = lshr i32 %cpu, 6
  %shift = and i32 %cpu, 63
  %wide = zext i32 %shift to i64
  %bit = shl i64 1, %wide
  %word.at = getelementptr i64, ptr %set, i32 %word
  %old = load i64, ptr %word.at, align 8
  %new = or i64 %old, %bit
  store i64 %new, ptr %word.at, align 8
  br label %next
next:
  %i.next = add i64 %i, 1
  %more = icmp ule i64 %i.next, %started
  br i1 %more, label %each, label %done
done:
  %one = insertvalue { i1, i1 } poison, i1 %clash.next, 0
  %both = insertvalue { i1, i1 } %one, i1 %awake.next, 1
  ret { i1, i1 } %both
}

$avoid

; Finds a place for this thread that no sleeping worker and no caller has, and notes it in seat %index. Whether no worker
; below %threads sleeps.
define internal i1 @settle(ptr %pool, i64 %index, i64 %threads) nounwind {
entry:
  %set = alloca [$cpu_words x i64], align 8
  %here = call i32 @here()
  %found = call { i1, i1 } @survey(ptr %pool, i64 %index, i32 %here, i64 %threads, ptr %set)
  %clash = extractvalue { i1, i1 } %found, 0
  %awake = extractvalue { i1, i1 } %found, 1
  br i1 %clash, label %move, label %note
move:
  call void @avoid(ptr %set)
  %there = call i32 @here()
  br label %note
note:
  %place = phi i32 [ %here, %entry ], [ %there, %move ]
  %at = call ptr @place_of(ptr %pool, i64 %index)
  %old = load atomic i32, ptr %at monotonic, align 4
  %same = icmp eq i32 %old, %place
  br i1 %same, label %done, label %store
store:
  store atomic i32 %place, ptr %at monotonic, align 4
  br label %done
done:
  ret i1 %awake
}
