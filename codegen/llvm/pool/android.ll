; What `linux.ll` asks of a C library and Bionic of API 24 lacks.

declare i32 @posix_memalign(ptr, i64, i64)

define hidden ptr @aligned_alloc(i64 %align, i64 %bytes) nounwind {
  %made.at = alloca ptr, align 8
  store ptr null, ptr %made.at, align 8
  %failed = call i32 @posix_memalign(ptr %made.at, i64 %align, i64 %bytes)
  %made = load ptr, ptr %made.at, align 8
  ret ptr %made
}
