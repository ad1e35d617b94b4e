; What the pool asks of a system and of a C library, in WebAssembly, besides threads: nobody chooses the processor of one.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)

define internal i32 @here() nounwind {
  ret i32 0
}

define internal void @avoid(ptr %set) nounwind {
  ret void
}

define hidden ptr @memset(ptr %to, i32 %byte, i64 %bytes) nounwind {
  %narrow = trunc i32 %byte to i8
  call void @llvm.memset.p0.i64(ptr %to, i8 %narrow, i64 %bytes, i1 false)
  ret ptr %to
}

; Blocks that were given back: bytes, the next one.
@spare = internal global ptr null, align 4

; The first spare block that is large enough, or new pages of the module's memory. A block begins with 64 bytes of its own.
define ptr @aligned_alloc(i64 %align, i64 %bytes) nounwind {
entry:
  %more = add i64 %bytes, 65599
  %whole64 = and i64 %more, -65536
  %possible = icmp ult i64 %whole64, 4294967296
  %whole = trunc i64 %whole64 to i32
  br i1 %possible, label %look, label %fail
look:
  %link = phi ptr [ @spare, %entry ], [ %next.at, %next ]
  %block = load ptr, ptr %link, align 4
  %none = icmp eq ptr %block, null
  br i1 %none, label %grow, label %check
check:
  %size = load i32, ptr %block, align 4
  %fits = icmp uge i32 %size, %whole
  br i1 %fits, label %take, label %next
next:
  %next.at = getelementptr i8, ptr %block, i32 4
  br label %look
take:
  %rest.at = getelementptr i8, ptr %block, i32 4
  %rest = load ptr, ptr %rest.at, align 4
  store ptr %rest, ptr %link, align 4
  %again = getelementptr i8, ptr %block, i32 64
  ret ptr %again
grow:
  %pages = lshr i32 %whole, 16
  %last = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %pages)
  %full = icmp eq i32 %last, -1
  br i1 %full, label %fail, label %give
give:
  %address = shl i32 %last, 16
  %made = inttoptr i32 %address to ptr
  store i32 %whole, ptr %made, align 4
  %memory = getelementptr i8, ptr %made, i32 64
  ret ptr %memory
fail:
  ret ptr null
}

define void @free(ptr %memory) nounwind {
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %keep
keep:
  %block = getelementptr i8, ptr %memory, i32 -64
  %first = load ptr, ptr @spare, align 4
  %next.at = getelementptr i8, ptr %block, i32 4
  store ptr %first, ptr %next.at, align 4
  store ptr %block, ptr @spare, align 4
  br label %done
done:
  ret void
}

define hidden ptr @memcpy(ptr %to, ptr %from, i64 %bytes) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret ptr %to
}

define internal i32 @getpid() nounwind {
  ret i32 1
}

define internal i32 @sched_yield() nounwind {
  ret i32 0
}

define internal i32 @pthread_join(i64 %thread, ptr %result) nounwind {
  ret i32 0
}

define internal i32 @sigfillset(ptr %set) nounwind {
  ret i32 0
}

define internal i32 @pthread_sigmask(i32 %how, ptr %set, ptr %old) nounwind {
  ret i32 0
}

; LLVM calls it for products of 128 bits: each factor is a low and a high half.
define hidden void @__multi3(ptr %product, i64 %a, i64 %a.high, i64 %b, i64 %b.high) nounwind {
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry0 = lshr i64 %p00, 32
  %low01 = and i64 %p01, 4294967295
  %low10 = and i64 %p10, 4294967295
  %sum01 = add i64 %carry0, %low01
  %middle = add i64 %sum01, %low10
  %low = mul i64 %a, %b
  %high01 = lshr i64 %p01, 32
  %high10 = lshr i64 %p10, 32
  %carry1 = lshr i64 %middle, 32
  %cross0 = mul i64 %a, %b.high
  %cross1 = mul i64 %a.high, %b
  %high.0 = add i64 %p11, %high01
  %high.1 = add i64 %high.0, %high10
  %high.2 = add i64 %high.1, %carry1
  %high.3 = add i64 %high.2, %cross0
  %high = add i64 %high.3, %cross1
  %high.at = getelementptr i64, ptr %product, i32 1
  store i64 %low, ptr %product, align 8
  store i64 %high, ptr %high.at, align 8
  ret void
}
