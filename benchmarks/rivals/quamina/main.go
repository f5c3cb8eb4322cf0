// Quamina as a program that benchmarks.rivals asks; its docstring has what is said.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"quamina.net/go/quamina"
)

const ofThread = 3 // CLOCK_THREAD_CPUTIME_ID of Linux

func lines(path string) [][]byte {
	text, err := os.ReadFile(path)
	check(err)
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// spent is the CPU time of this thread in nanoseconds.
func spent() int64 {
	var time syscall.Timespec
	if _, _, wrong := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, ofThread,
		uintptr(unsafe.Pointer(&time)), 0); wrong != 0 {
		panic(wrong)
	}
	return time.Nano()
}

// Arguments: patterns and events, one on each line, and where the answers go.
func main() {
	runtime.LockOSThread()
	patterns, events := lines(os.Args[1]), lines(os.Args[2])
	matcher, err := quamina.New(quamina.WithMediaType("application/json"))
	check(err)
	begin := spent()
	for i, pattern := range patterns {
		check(matcher.AddPattern(i, string(pattern)))
	}
	fmt.Println(spent() - begin)
	file, err := os.Create(os.Args[3])
	check(err)
	out := bufio.NewWriter(file)
	for _, event := range events {
		found, err := matcher.MatchesForEvent(event)
		check(err)
		for _, each := range found {
			fmt.Fprintf(out, "%v ", each)
		}
		fmt.Fprintln(out)
	}
	check(out.Flush())
	asked := bufio.NewScanner(os.Stdin)
	for asked.Scan() {
		count := 0
		begin = spent()
		for _, event := range events {
			found, err := matcher.MatchesForEvent(event)
			check(err)
			count += len(found)
		}
		fmt.Println(spent()-begin, count)
	}
}
