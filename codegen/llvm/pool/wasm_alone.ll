; WebAssembly with one thread, and no clock.

define hidden i64 @now() nounwind {
  ret i64 0
}

define internal void @sleep(ptr %at, i32 %seen, ptr %sleepers) nounwind {
  ret void
}

define internal void @rouse(ptr %at, ptr %sleepers) nounwind {
  ret void
}

define internal i32 @pthread_create(ptr %thread, ptr %options, ptr %run, ptr %argument) nounwind {
  ret i32 1
}
