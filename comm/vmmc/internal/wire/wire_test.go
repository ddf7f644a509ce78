package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

var samples = []Frame{
	{Type: Hello, Version: Version, Count: 5000, Name: "a.example"},
	{Type: Hello, Version: Version},
	{Type: Import, Number: 1, Export: 7},
	{Type: Release, Number: 1},
	{Type: Data, Number: 1, Offset: 1 << 40, Bytes: MaxChunk},
	{Type: Notify, Number: 1, Offset: 3, Bytes: 4, Tag: 0xffff},
	{Type: Grant, Number: 1, Offset: 4096, Bytes: 1 << 33, Count: 16, Shared: true},
	{Type: Deny, Number: 2, Code: NotPermitted},
	{Type: Revoke, Number: 1},
	{Type: Credit, Number: 1, Count: 3},
	{Type: Ack, Count: 1 << 50},
	{Type: Ping},
	{Type: Bye},
	{Type: Endpoint, Number: 1, Name: "36 bytes of package rc"},
	{Type: Region, Number: 1, Offset: 1 << 47, Key: 1 << 31},
	{Type: Lease, Number: 1},
	{Type: Recall, Number: 1},
	{Type: Yield, Number: 1},
	{Type: Down, Number: 1, Code: RDMAFailed},
	{Type: NoLease, Number: 3},
}

func TestEveryFrameReadsBackAsWritten(t *testing.T) {
	var b []byte
	seen := map[Type]bool{}
	for i := range samples {
		b = Append(b, &samples[i])
		seen[samples[i].Type] = true
	}
	if len(seen) != int(types)-1 {
		t.Errorf("%d types of %d have a sample", len(seen), types-1)
	}
	r := NewReader(bytes.NewReader(b))
	for _, want := range samples {
		if got, err := r.Read(); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := r.Read(); err != io.EOF {
		t.Errorf("after the last frame: %v", err)
	}
}

// Messages and what answers them have no names.
func TestFramesWithoutANameAreReadWithoutAllocation(t *testing.T) {
	b := Append(Append(nil, &Frame{Type: Data, Number: 1, Bytes: 8}), &Frame{Type: Ack, Count: 1})
	in := bytes.NewReader(b)
	r := NewReader(in)
	allocations := testing.AllocsPerRun(100, func() {
		in.Reset(b)
		for range 2 {
			if _, err := r.Read(); err != nil {
				t.Error(err)
			}
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestCutFramesAreNoFrames(t *testing.T) {
	for i := range samples {
		whole := Append(nil, &samples[i])
		for n := 1; n < len(whole); n++ {
			if _, err := NewReader(bytes.NewReader(whole[:n])).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d of %d bytes of type %d: %v", n, len(whole), samples[i].Type, err)
			}
		}
	}
}

func TestFramesThatNoNodeSendsAreMalformed(t *testing.T) {
	for what, b := range map[string][]byte{
		"type 0":                     {0, 0, 0, 0},
		"a type beyond the last":     {byte(types), 0, 0, 0},
		"a body of 16 MiB":           {byte(Hello), 255, 255, 255},
		"a ping with a body":         {byte(Ping), 0, 0, 1, 0},
		"a release without number":   {byte(Release), 0, 0, 0},
		"neither shared nor not":     append(Append(nil, &samples[6])[:headerBytes+32], 2),
		"data of no byte":            Append(nil, &Frame{Type: Data, Number: 1}),
		"data longer than a chunk":   Append(nil, &Frame{Type: Data, Number: 1, Bytes: MaxChunk + 1}),
		"a release that is too long": append([]byte{byte(Release), 0, 0, 9}, make([]byte, 9)...),
	} {
		if f, err := NewReader(bytes.NewReader(b)).Read(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", what, f, err)
		}
	}
}

func TestNameThatIsTooLongIsNotWritten(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it was")
		}
	}()
	Append(nil, &Frame{Type: Hello, Name: strings.Repeat("x", MaxName+1)})
}

// Whatever arrives is an error, or is a frame whose code is what arrived. Nothing is read beyond it.
func FuzzRead(f *testing.F) {
	for i := range samples {
		f.Add(append(Append(nil, &samples[i]), 1, 2, 3))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		frame, err := NewReader(r).Read()
		if err != nil {
			return
		}
		taken := b[:len(b)-r.Len()]
		if again := Append(nil, &frame); !bytes.Equal(again, taken) {
			t.Errorf("%x was read as %+v, which is %x", taken, frame, again)
		}
	})
}
