// Reads a handwritten digit with a compiled network, which is linked into the program.
//
//	aot compile ../digits/model.xml -o digits.o --header digits.h
//	go run . ../digits/seven.npy
package main

/*
#cgo LDFLAGS: ${SRCDIR}/digits.o -lpthread
#include "digits.h"
#include <stdlib.h>

static void *memory(int64_t bytes) { return aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64); }

// Go can neither call pointers to functions nor pass pointers to pointers of its own.
static int32_t infer(const void *pixels, void *scores) {
    const struct aot_model *model = AOT_DIGITS(AOT_ABI);
    const void *inputs[] = {pixels};
    void *outputs[] = {scores}, *arena = memory(model->arena_size(NULL, 1)), *state = memory(model->state_size(NULL));
    struct aot_request request = {inputs, outputs, NULL, arena, state, NULL, 1, NULL};
    int32_t code = model->infer(&request);
    free(arena), free(state);
    return code;
}
*/
import "C"
import (
	"fmt"
	"os"
	"unsafe"
)

const header, pixels, digits = 128, 64, 10

func main() {
	file, err := os.ReadFile(os.Args[1])
	if err != nil || len(file) != header+4*pixels {
		fmt.Fprintln(os.Stderr, "usage: digits image.npy")
		os.Exit(2)
	}
	input, output := C.memory(4*pixels), C.memory(4*digits)
	copy((*[4 * pixels]byte)(input)[:], file[header:])
	if code := C.infer(input, output); code != 0 {
		os.Exit(int(code))
	}
	scores, best := (*[digits]float32)(unsafe.Pointer(output)), 0
	for i, score := range scores {
		if score > scores[best] {
			best = i
		}
	}
	fmt.Println(best)
}
