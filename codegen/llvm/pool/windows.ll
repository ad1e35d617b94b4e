; What the pool asks of Windows: the functions that `waiting.ll` and `placement.ll` name, and those of a C library, by calls
; of KERNEL32.

declare i32 @QueryPerformanceCounter(ptr)
declare i32 @QueryPerformanceFrequency(ptr)
declare i32 @WaitOnAddress(ptr, ptr, i64, i32)
declare void @WakeByAddressAll(ptr)
declare void @GetCurrentProcessorNumberEx(ptr)
declare ptr @GetCurrentThread()
declare i32 @GetThreadGroupAffinity(ptr, ptr)
declare i32 @SetThreadGroupAffinity(ptr, ptr, ptr)
declare ptr @VirtualAlloc(ptr, i64, i32, i32)
declare i32 @VirtualFree(ptr, i64, i32)
declare i32 @GetCurrentProcessId()
declare i32 @SwitchToThread()
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @WaitForSingleObject(ptr, i32)
declare i32 @CloseHandle(ptr)
declare void @RtlMoveMemory(ptr, ptr, i64)
declare void @RtlFillMemory(ptr, i64, i32)

; Nanoseconds of a clock that nobody sets.
define hidden i64 @now() nounwind noinline {
  %rate.at = alloca i64, align 8
  %ticks.at = alloca i64, align 8
  %told = call i32 @QueryPerformanceFrequency(ptr %rate.at)
  %read = call i32 @QueryPerformanceCounter(ptr %ticks.at)
  %rate = load i64, ptr %rate.at, align 8
  %ticks = load i64, ptr %ticks.at, align 8
  %seconds = udiv i64 %ticks, %rate
  %rest = urem i64 %ticks, %rate
  %fine = mul i64 %rest, 1000000000
  %part = udiv i64 %fine, %rate
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %part
  ret i64 %now
}

; Sleep as long as the low half of the counter at %at is %seen; %sleepers tells others that somebody does.
define internal void @sleep(ptr %at, i32 %seen, ptr %sleepers) nounwind {
  %seen.at = alloca i32, align 4
  store i32 %seen, ptr %seen.at, align 4
  %old = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %result = call i32 @WaitOnAddress(ptr %at, ptr %seen.at, i64 4, i32 -1)
  %old2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  ret void
}

; After a counter changed, with seq_cst: whoever looked at it before sleeps by now, or will see the change.
define internal void @rouse(ptr %at, ptr %sleepers) nounwind {
entry:
  %count = load atomic i32, ptr %sleepers seq_cst, align 4
  %none = icmp eq i32 %count, 0
  br i1 %none, label %done, label %call
call:
  call void @WakeByAddressAll(ptr %at)
  br label %done
done:
  ret void
}

; Processor + 1 of this thread, by its group of 64 processors and its number there; 0 if it is unknown.
define internal i32 @here() nounwind {
  %number.at = alloca { i16, i8, i8 }, align 4
  call void @GetCurrentProcessorNumberEx(ptr %number.at)
  %group16 = load i16, ptr %number.at, align 4
  %low.at = getelementptr { i16, i8, i8 }, ptr %number.at, i64 0, i32 1
  %low8 = load i8, ptr %low.at, align 2
  %group = zext i16 %group16 to i32
  %low = zext i8 %low8 to i32
  %first = shl i32 %group, 6
  %cpu = add i32 %first, %low
  %known = icmp ult i32 %cpu, $cpus
  %place = add i32 %cpu, 1
  %result = select i1 %known, i32 %place, i32 0
  ret i32 %result
}

; Moves this thread to a processor of its group outside of a set, if it may run on one.
define internal void @avoid(ptr %set) nounwind {
entry:
  %allowed = alloca { i64, i64 }, align 8
  %left.at = alloca { i64, i64 }, align 8
  %thread = call ptr @GetCurrentThread()
  %told = call i32 @GetThreadGroupAffinity(ptr %thread, ptr %allowed)
  %group.at = getelementptr { i64, i64 }, ptr %allowed, i64 0, i32 1
  %group16 = load i16, ptr %group.at, align 8
  %group = zext i16 %group16 to i64
  %near = icmp ult i64 %group, $cpu_words
  %ok = icmp ne i32 %told, 0
  %known = and i1 %near, %ok
  br i1 %known, label %look, label %done
look:
  %used.at = getelementptr i64, ptr %set, i64 %group
  %used = load i64, ptr %used.at, align 8
  %unused = xor i64 %used, -1
  %may = load i64, ptr %allowed, align 8
  %left = and i64 %may, %unused
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %move
move:
  store i64 %left, ptr %left.at, align 8
  %left.group.at = getelementptr { i64, i64 }, ptr %left.at, i64 0, i32 1
  store i64 %group, ptr %left.group.at, align 8
  %moved = call i32 @SetThreadGroupAffinity(ptr %thread, ptr %left.at, ptr null)
  %released = call i32 @SetThreadGroupAffinity(ptr %thread, ptr %allowed, ptr null)
  br label %done
done:
  ret void
}

; Pages, at a multiple of 64 KiB.
define hidden ptr @aligned_alloc(i64 %align, i64 %bytes) nounwind {
  %made = call ptr @VirtualAlloc(ptr null, i64 %bytes, i32 $commit, i32 $writable)
  ret ptr %made
}

define hidden void @free(ptr %memory) nounwind {
  %ignored = call i32 @VirtualFree(ptr %memory, i64 0, i32 $release)
  ret void
}

define internal i32 @getpid() nounwind {
  %id = call i32 @GetCurrentProcessId()
  ret i32 %id
}

define internal i32 @sched_yield() nounwind {
  %ignored = call i32 @SwitchToThread()
  ret i32 0
}

define internal i32 @pthread_create(ptr %thread, ptr %options, ptr %run, ptr %argument) nounwind {
  %made = call ptr @CreateThread(ptr null, i64 $thread_stack, ptr %run, ptr %argument, i32 $reserved, ptr null)
  store ptr %made, ptr %thread, align 8
  %none = icmp eq ptr %made, null
  %failed = zext i1 %none to i32
  ret i32 %failed
}

define internal i32 @pthread_join(i64 %thread, ptr %result) nounwind {
  %handle = inttoptr i64 %thread to ptr
  %ended = call i32 @WaitForSingleObject(ptr %handle, i32 -1)
  %closed = call i32 @CloseHandle(ptr %handle)
  ret i32 0
}

define internal i32 @sigfillset(ptr %set) nounwind {
  ret i32 0
}

define internal i32 @pthread_sigmask(i32 %how, ptr %set, ptr %old) nounwind {
  ret i32 0
}

; LLVM turns loops into calls of these, in the kernels' modules, too.
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %bytes) nounwind {
  call void @RtlMoveMemory(ptr %to, ptr %from, i64 %bytes)
  ret ptr %to
}

define hidden ptr @memmove(ptr %to, ptr %from, i64 %bytes) nounwind {
  call void @RtlMoveMemory(ptr %to, ptr %from, i64 %bytes)
  ret ptr %to
}

define hidden ptr @memset(ptr %to, i32 %byte, i64 %bytes) nounwind {
  call void @RtlFillMemory(ptr %to, i64 %bytes, i32 %byte)
  ret ptr %to
}
