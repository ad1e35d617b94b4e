; The loop of a language model: feeds tokens, chooses the next one from the logits of the last, and feeds it back.
;
;   sequence   keys and values of one sequence, and the memory of its request; made by the first @generate, grows
;   block      memory at a multiple of 64: address, bytes

%generation = type { ptr, i64, i64, ptr, i64, double, i64, double, i64, ptr, ptr, ptr, i64, i64, ptr }  ; abi.Generation
%block = type { ptr, i64 }
; request, tokens, blocks of inputs and outputs, of arena, state and choice; symbols, dimensions, bytes, addresses
%sequence = type {
  %request, i64, [$inputs x %block], [$outputs x %block], %block, %block, %block,
  [$symbols x i64], [$input_dims x i64], [$output_dims x i64], [$outputs x i64], [$inputs x ptr], [$outputs x ptr]
}

declare ptr @memcpy(ptr, ptr, i64)

; Makes a block at least so large, and zero where it has grown if its content is kept; false if there is no memory.
define internal i1 @fit_block(ptr %block, i64 %bytes, i1 %kept) nounwind {
entry:
  %bytes.at = getelementptr %block, ptr %block, i64 0, i32 1
  %before = load i64, ptr %bytes.at, align 8
  %enough = icmp uge i64 %before, %bytes
  br i1 %enough, label %fits, label %grow
fits:
  ret i1 true
grow:
  %above = add i64 %bytes, 4095
  %whole = and i64 %above, -4096
  %made = call ptr @aligned_alloc(i64 64, i64 %whole)
  %none = icmp eq ptr %made, null
  br i1 %none, label %full, label %take
full:
  ret i1 false
take:
  %old = load ptr, ptr %block, align 8
  br i1 %kept, label %keep, label %replace
keep:
  %some = icmp ne ptr %old, null
  br i1 %some, label %copy, label %clear
copy:
  %copied = call ptr @memcpy(ptr %made, ptr %old, i64 %before)
  br label %clear
clear:
  %end = getelementptr i8, ptr %made, i64 %before
  %rest = sub i64 %whole, %before
  %cleared = call ptr @memset(ptr %end, i32 0, i64 %rest)
  br label %replace
replace:
  call void @free(ptr %old)
  store ptr %made, ptr %block, align 8
  store i64 %whole, ptr %bytes.at, align 8
  ret i1 true
}

; Fills the first %count elements of a block with %first, %first + %step, ..., or with %ids if there are some.
define internal i1 @fill_block(ptr %block, ptr %place, i64 %count, i64 %width, i64 %first, i64 %step, ptr %ids) nounwind {
entry:
  %bytes = mul i64 %count, %width
  %fits = call i1 @fit_block(ptr %block, i64 %bytes, i1 false)
  br i1 %fits, label %begin, label %full
full:
  ret i1 false
begin:
  %to = load ptr, ptr %block, align 8
  store ptr %to, ptr %place, align 8
  %given = icmp ne ptr %ids, null
  %is.short = icmp eq i64 %width, 4
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %stored ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %element, label %done
element:
  br i1 %given, label %copy, label %count.up
copy:
  %id.at = getelementptr i64, ptr %ids, i64 %i
  %id = load i64, ptr %id.at, align 8
  br label %store
count.up:
  %steps = mul i64 %i, %step
  %number = add i64 %first, %steps
  br label %store
store:
  %value = phi i64 [ %id, %copy ], [ %number, %count.up ]
  br i1 %is.short, label %store.short, label %store.long
store.short:
  %short.at = getelementptr i32, ptr %to, i64 %i
  %short = trunc i64 %value to i32
  store i32 %short, ptr %short.at, align 4
  br label %stored
store.long:
  %long.at = getelementptr i64, ptr %to, i64 %i
  store i64 %value, ptr %long.at, align 8
  br label %stored
stored:
  %i.next = add i64 %i, 1
  br label %next
done:
  ret i1 true
}

; Sizes and memory for the dimensions of the inputs; 0 or an error code.
define internal i32 @fit_sequence(ptr %sequence) nounwind {
entry:
  %threads.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_threads
  %threads = load i64, ptr %threads.at, align 8
  %arena = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_arena
  %state = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_state
  %symbols = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_symbols
  %input.dims = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_input_dims
  %output.dims = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_output_dims
  %sizes = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_output_bytes
  %code = call i32 @shapes(ptr %input.dims, ptr %symbols, ptr %output.dims)
  %good = icmp eq i32 %code, 0
  br i1 %good, label %measure, label %bad
bad:
  ret i32 %code
measure:
  call void @output_sizes(ptr %symbols, ptr %sizes)
  %arena.bytes = call i64 @arena_size(ptr %symbols, i64 %threads)
  %state.bytes = call i64 @state_size(ptr %symbols)
  %arena.fits = call i1 @fit_block(ptr %arena, i64 %arena.bytes, i1 false)
  %state.fits = call i1 @fit_block(ptr %state, i64 %state.bytes, i1 true)
  %both.fit = and i1 %arena.fits, %state.fits
  br i1 %both.fit, label %next, label %full
full:
  ret i32 $error_memory
next:
  %i = phi i64 [ 0, %measure ], [ %i.next, %place ]
  %more = icmp ult i64 %i, $outputs
  br i1 %more, label %output, label %done
output:
  %block = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_output_blocks, i64 %i
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at, align 8
  %fits = call i1 @fit_block(ptr %block, i64 %size, i1 false)
  br i1 %fits, label %place, label %full
place:
  %address = load ptr, ptr %block, align 8
  %place.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_outputs, i64 %i
  store ptr %address, ptr %place.at, align 8
  %i.next = add i64 %i, 1
  br label %next
done:
  %arena.address = load ptr, ptr %arena, align 8
  %arena.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_arena
  store ptr %arena.address, ptr %arena.at, align 8
  %state.address = load ptr, ptr %state, align 8
  %state.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_state
  store ptr %state.address, ptr %state.at, align 8
  ret i32 0
}

; Appends tokens to a sequence; 0 or an error code.
define internal i32 @feed(ptr %sequence, ptr %ids, i64 %count) nounwind {
entry:
  %past.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_tokens
  %past = load i64, ptr %past.at, align 8
  %whole = add i64 %past, %count
  %input.dims = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_input_dims
  %given = call i1 @give_inputs(ptr %sequence, ptr %input.dims, ptr %ids, i64 %count, i64 %past, i64 %whole)
  br i1 %given, label %run, label %full
full:
  ret i32 $error_memory
run:
  %fit = call i32 @fit_sequence(ptr %sequence)
  %fits = icmp eq i32 %fit, 0
  br i1 %fits, label %infer, label %bad
bad:
  ret i32 %fit
infer:
  %code = call i32 @infer(ptr %sequence)
  switch i32 %code, label %failed [ i32 0, label %done i32 $error_capacity, label %run ]
failed:
  ret i32 %code
done:
  store i64 %whole, ptr %past.at, align 8
  %symbols = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_symbols
  %output.dims = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_output_dims
  call void @output_dims(ptr %symbols, ptr %output.dims)
  ret i32 0
}

; The logits of the last token.
define internal ptr @last_logits(ptr %sequence) nounwind {
entry:
  %place.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_outputs, i64 $logits
  %place = load ptr, ptr %place.at, align 8
  %dims = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_output_dims, i64 $logits_dims
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %dimension ]
  %rows = phi i64 [ 1, %entry ], [ %rows.next, %dimension ]
  %more = icmp ult i64 %i, $logits_outer
  br i1 %more, label %dimension, label %done
dimension:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at, align 8
  %rows.next = mul i64 %rows, %dim
  %i.next = add i64 %i, 1
  br label %next
done:
  %before = sub i64 %rows, 1
  %elements = mul i64 %before, $words
  %last = getelementptr float, ptr %place, i64 %elements
  ret ptr %last
}

; True if %value is one of %count numbers.
define internal i1 @is_among(i64 %value, ptr %numbers, i64 %count) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %none
look:
  %at = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %at, align 8
  %same = icmp eq i64 %number, %value
  %i.next = add i64 %i, 1
  br i1 %same, label %found, label %next
found:
  ret i1 true
none:
  ret i1 false
}

; True if all of one or more tokens are below the number of words.
define internal i1 @are_tokens(ptr %ids, i64 %count) nounwind {
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %next, label %bad
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %good
look:
  %at = getelementptr i64, ptr %ids, i64 %i
  %id = load i64, ptr %at, align 8
  %known = icmp ult i64 %id, $words
  %i.next = add i64 %i, 1
  br i1 %known, label %next, label %bad
good:
  ret i1 true
bad:
  ret i1 false
}

; True if the rules by which tokens are drawn have values that they may have.
define internal i1 @are_rules(double %temperature, i64 %top_k, double %top_p) nounwind {
  %finite = fcmp olt double %temperature, 0x7FF0000000000000
  %warm = fcmp oge double %temperature, 0.0
  %count = icmp sge i64 %top_k, 0
  %above = fcmp ogt double %top_p, 0.0
  %part = fcmp ole double %top_p, 1.0
  %temperatures = and i1 %finite, %warm
  %parts = and i1 %above, %part
  %counts = and i1 %temperatures, %count
  %all = and i1 %counts, %parts
  ret i1 %all
}

; The sequence of a generation, a new one if it has none; null if there is no memory.
define internal ptr @sequence_of(ptr %generation) nounwind {
entry:
  %sequence.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_sequence
  %before = load ptr, ptr %sequence.at, align 8
  %some = icmp ne ptr %before, null
  br i1 %some, label %found, label %make
make:
  %end = getelementptr %sequence, ptr null, i64 1
  %size = ptrtoint ptr %end to i64
  %above = add i64 %size, 63
  %whole = and i64 %above, -64
  %made = call ptr @aligned_alloc(i64 64, i64 %whole)
  %none = icmp eq ptr %made, null
  br i1 %none, label %full, label %clear
full:
  ret ptr null
clear:
  %cleared = call ptr @memset(ptr %made, i32 0, i64 %whole)
  store ptr %made, ptr %sequence.at, align 8
  br label %found
found:
  %sequence = phi ptr [ %before, %entry ], [ %made, %clear ]
  %inputs = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_inputs
  %inputs.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_inputs
  store ptr %inputs, ptr %inputs.at, align 8
  %outputs = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_outputs
  %outputs.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_outputs
  store ptr %outputs, ptr %outputs.at, align 8
  %symbols = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_symbols
  %symbols.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_symbols
  store ptr %symbols, ptr %symbols.at, align 8
  %pool.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_pool
  %pool = load ptr, ptr %pool.at, align 8
  %request.pool.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_pool
  store ptr %pool, ptr %request.pool.at, align 8
  %threads.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_threads
  %threads = load i64, ptr %threads.at, align 8
  %one.or.more = call i64 @llvm.smax.i64(i64 %threads, i64 1)
  %request.threads.at = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_request, i32 $request_threads
  store i64 %one.or.more, ptr %request.threads.at, align 8
  ret ptr %sequence
}

; Appends a prompt in chunks, whose sizes change no bit; 0 or an error code.
define internal i32 @feed_prompt(ptr %sequence, ptr %ids, i64 %count) nounwind {
entry:
  br label %next
next:
  %at = phi i64 [ 0, %entry ], [ %end, %fed ]
  %left = sub i64 %count, %at
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %chunk, label %done
chunk:
  %size = call i64 @llvm.smin.i64(i64 %left, i64 $chunk)
  %ids.at = getelementptr i64, ptr %ids, i64 %at
  %code = call i32 @feed(ptr %sequence, ptr %ids.at, i64 %size)
  %end = add i64 %at, %size
  %good = icmp eq i32 %code, 0
  br i1 %good, label %fed, label %bad
fed:
  br label %next
bad:
  ret i32 %code
done:
  ret i32 0
}

define internal i32 @generate(ptr %generation) nounwind {
entry:
  %random = alloca [4 x i64], align 8
  %token.at = alloca i64, align 8
  %made.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_made
  store i64 0, ptr %made.at, align 8
  %ids = load ptr, ptr %generation, align 8
  %count.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_count
  %count = load i64, ptr %count.at, align 8
  %most.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_most
  %most = load i64, ptr %most.at, align 8
  %stop.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_stop
  %stop = load ptr, ptr %stop.at, align 8
  %stop.count.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_stop_count
  %stop.count = load i64, ptr %stop.count.at, align 8
  %temperature.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_temperature
  %temperature = load double, ptr %temperature.at, align 8
  %top_k.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_top_k
  %top_k = load i64, ptr %top_k.at, align 8
  %top_p.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_top_p
  %top_p = load double, ptr %top_p.at, align 8
  %seed.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_seed
  %on_token.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_on_token
  %on_token = load ptr, ptr %on_token.at, align 8
  %user.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_user
  %user = load ptr, ptr %user.at, align 8
  %tokens = call i1 @are_tokens(ptr %ids, i64 %count)
  br i1 %tokens, label %rules, label %bad.tokens
bad.tokens:
  ret i32 $error_tokens
rules:
  %lawful = call i1 @are_rules(double %temperature, i64 %top_k, double %top_p)
  br i1 %lawful, label %begin, label %bad.rules
bad.rules:
  ret i32 $error_sampling
begin:
  %sequence = call ptr @sequence_of(ptr %generation)
  %none = icmp eq ptr %sequence, null
  br i1 %none, label %full, label %room
room:
  %choice = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_choice
  %choice.bytes = mul i64 $words, 12
  %fits = call i1 @fit_block(ptr %choice, i64 %choice.bytes, i1 false)
  br i1 %fits, label %prompt, label %full
full:
  ret i32 $error_memory
prompt:
  %memory = load ptr, ptr %choice, align 8
  %heap = getelementptr double, ptr %memory, i64 $words
  call void @seed_random(ptr %random, ptr %seed.at, i64 0, i64 1, ptr null)
  %code = call i32 @feed_prompt(ptr %sequence, ptr %ids, i64 %count)
  %good = icmp eq i32 %code, 0
  br i1 %good, label %next, label %bad
bad:
  ret i32 %code
next:
  %made = phi i64 [ 0, %prompt ], [ %made.now, %fed ]
  %more = icmp slt i64 %made, %most
  br i1 %more, label %pick, label %done
done:
  ret i32 0
pick:
  %logits = call ptr @last_logits(ptr %sequence)
  call void @choose(ptr %token.at, ptr %logits, ptr %memory, ptr %heap, ptr %temperature.at, ptr %top_k.at, ptr %top_p.at,
    ptr %random, i64 0, i64 1, ptr null)
  %token = load i64, ptr %token.at, align 8
  %number = icmp sge i64 %token, 0
  br i1 %number, label %tell, label %bad.logits
bad.logits:
  ret i32 $error_logits
tell:
  %made.now = add i64 %made, 1
  store i64 %made.now, ptr %made.at, align 8
  %silent = icmp eq ptr %on_token, null
  br i1 %silent, label %told, label %call
call:
  %answer = call i32 %on_token(ptr %user, i64 %token)
  %goes.on = icmp eq i32 %answer, 0
  br i1 %goes.on, label %told, label %done
told:
  %stops = call i1 @is_among(i64 %token, ptr %stop, i64 %stop.count)
  %enough = icmp sge i64 %made.now, %most
  %ends = or i1 %stops, %enough
  br i1 %ends, label %done, label %feed
feed:
  %fed.code = call i32 @feed(ptr %sequence, ptr %token.at, i64 1)
  %fed.good = icmp eq i32 %fed.code, 0
  br i1 %fed.good, label %fed, label %failed
failed:
  ret i32 %fed.code
fed:
  br label %next
}

; Gives back the memory of a generation's sequence.
define internal void @forget(ptr %generation) nounwind {
entry:
  %sequence.at = getelementptr %generation, ptr %generation, i64 0, i32 $generation_sequence
  %sequence = load ptr, ptr %sequence.at, align 8
  store ptr null, ptr %sequence.at, align 8
  %none = icmp eq ptr %sequence, null
  br i1 %none, label %done, label %begin
begin:
  %first = getelementptr %sequence, ptr %sequence, i64 0, i32 $sequence_input_blocks
  br label %next
next:
  ; blocks lie one behind the other
  %i = phi i64 [ 0, %begin ], [ %i.next, %next ]
  %block = getelementptr %block, ptr %first, i64 %i
  %memory = load ptr, ptr %block, align 8
  call void @free(ptr %memory)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $blocks
  br i1 %more, label %next, label %end
end:
  call void @free(ptr %sequence)
  br label %done
done:
  ret void
}
