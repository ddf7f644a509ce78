package broker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// tells makes an exporter that answers each question with n imports that have long addresses, and then perhaps done.
func tells(t *testing.T, u *user, n int, finishes bool) *exporter {
	t.Helper()
	c, process := pair(t)
	e := newExporter(c, key{me(), "x"}, u, 1, &message{})
	go e.read()
	go func() {
		for {
			m, _, err := process.receive()
			if err != nil {
				return
			}
			i := &ImportStats{Exporter: strings.Repeat("x", maxAddress)}
			for range n {
				if process.send(context.Background(), &message{Kind: imported, Question: m.Question, Import: i}) != nil {
					return
				}
			}
			if finishes {
				_ = process.send(context.Background(), &message{Kind: done, Question: m.Question, Stats: &Stats{}})
			}
		}
	}()
	t.Cleanup(func() { c.Close(); testwait.Receive(t, "the end of the exporter", e.gone) })
	return e
}

func TestWhatAUserTellsIsBounded(t *testing.T) {
	testwait.Bound(t)
	u := new(user)
	const many = maxTold / (maxAddress + 300)
	first, second := tells(t, u, many, true), tells(t, u, many, true)
	d, err := first.describe(within(t))
	if err != nil || len(d.Imports) != many || u.told.Load() < many*maxAddress {
		t.Fatalf("%d imports, %v; %d bytes count", len(d.Imports), err, u.told.Load())
	}
	if d, err := second.describe(within(t)); !errors.Is(err, errTold) || d.bytes > 0 || u.told.Load() > maxTold {
		t.Errorf("beyond the bound: %d imports, %v; %d bytes count", len(d.Imports), err, u.told.Load())
	}
	first.forget(&d)
	d, err = second.describe(within(t)) // it lost nothing but that answer
	if err != nil || len(d.Imports) != many {
		t.Errorf("after the first was forgotten: %d imports, %v", len(d.Imports), err)
	}
	second.forget(&d)
	if n := u.told.Load(); n != 0 {
		t.Errorf("%d bytes count at the end", n)
	}
}

func TestAnswersThatAreGivenUpTakeNothing(t *testing.T) {
	testwait.Bound(t)
	u := new(user)
	e := tells(t, u, 1000, false)
	for range 2 {
		ctx, cancel := context.WithCancel(within(t))
		ended := make(chan error)
		go func() { _, err := e.describe(ctx); ended <- err }()
		testwait.Until(t, "it has told all", func() bool { return u.told.Load() > 1000*maxAddress })
		cancel()
		if err := testwait.Receive(t, "the end", ended); !errors.Is(err, context.Canceled) || u.told.Load() != 0 {
			t.Errorf("%v; %d bytes count", err, u.told.Load())
		}
	}
}

// raw registers a process that then says what it likes.
func raw(t *testing.T, path, name string) *conn {
	t.Helper()
	c, err := open(within(t), path, &message{Kind: register, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, _, err := c.answer(within(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Root lists all users: one of them must not be able to make that wait for ever.
func TestAnswersThatNobodyAskedForBlockNoList(t *testing.T) {
	path := serve(t, Options{})
	c := raw(t, path, "x")
	for question := range uint64(20) {
		if err := c.send(within(t), &message{Kind: done, Question: question, Stats: &Stats{}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if all, err := List(within(t), path); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	const tells, ends = `{"kind":"export","question":1,"export":{"export":1}}`, `{"kind":"done","question":1,"stats":{}}`
	f.Add([]byte(tells + "\n" + ends))
	f.Add([]byte(`{"kind":"done","stats":{}}` + "\n" + ends + "\n" + `{"kind":"x","question":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		u := new(user)
		e := newExporter(nil, key{}, u, 1, &message{})
		e.asked, e.question = 1, 1
		var told int64
		for line := range strings.Lines(string(b)) {
			m, err := decode([]byte(line))
			if err != nil {
				return
			}
			told += int64(len(line))
			err = e.heard(&m)
			if n := u.told.Load(); n < 0 || n > told || err != nil && !errors.Is(err, errMessage) {
				t.Fatalf("%d bytes count of %d, %v", n, told, err)
			}
		}
		if len(e.answer) > 0 {
			d := <-e.answer
			e.forget(&d)
		}
		if e.forget(&e.partial); u.told.Load() != 0 {
			t.Errorf("%d bytes count at the end", u.told.Load())
		}
	})
}
