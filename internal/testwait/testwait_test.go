package testwait

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// stuck tests wait for ever; they are run by the others, each in a process of its own.
var stuck = map[string]func(t *testing.T){
	"bound": func(t *testing.T) {
		BoundAt(t, 10*time.Millisecond, func() any { return "the first state" }, func() any { return "the second" })
		select {}
	},
	"until":   func(t *testing.T) { Until(t, "a wonder", func() bool { return false }) },
	"receive": func(t *testing.T) { Receive(t, "a word", make(chan string)) },
}

func TestStuck(t *testing.T) {
	if f := stuck[os.Getenv("TESTWAIT_STUCK")]; f != nil {
		limit = 10 * time.Millisecond
		f(t)
	}
	t.Skip("run by TestWhoWaitsForEverFailsAndSaysWhere")
}

func TestWhoWaitsForEverFailsAndSaysWhere(t *testing.T) {
	for how, says := range map[string]string{"bound": "the second", "until": "never happened: a wonder",
		"receive": "never came: a word"} {
		t.Run(how, func(t *testing.T) {
			cmd := Command(t, os.Args[0], "-test.run=^TestStuck$")
			cmd.Env = append(os.Environ(), "TESTWAIT_STUCK="+how)
			out, err := cmd.CombinedOutput()
			if !errors.As(err, new(*exec.ExitError)) {
				t.Errorf("ended with %v", err)
			}
			for _, want := range []string{says, "TestStuck waits for too long", "testwait_test.go"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

func TestWhatComesInTimeIsNoFailure(t *testing.T) {
	Bound(t)
	c := make(chan int, 1)
	c <- 7
	if got := Receive(t, "7", c); got != 7 {
		t.Error(got)
	}
	n := 0
	Until(t, "three looks", func() bool { n++; return n == 3 })
}

func TestProcessThatDoesNotEndIsEnded(t *testing.T) {
	limit = 10 * time.Millisecond
	defer func() { limit = Limit }()
	start := time.Now()
	// the sleep has its output open
	out, err := Command(t, "sh", "-c", "echo begun; trap '' QUIT; sleep 20 & wait").CombinedOutput()
	if err == nil || time.Since(start) > Limit {
		t.Errorf("%v after %v: %s", err, time.Since(start), out)
	}
}
