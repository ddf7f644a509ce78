package wire

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

var info = Info{
	Name: "file", Size: math.MaxInt64, Mode: 0o644, ModTime: Time{true, -1, 7}, ETag: "1-2-3-4", Allocated: 4096,
}

// messages has one of each kind.
func messages() []Message {
	return []Message{
		&Hello{Version, true, true}, &Welcome{Version, 7, true, 65535, "@socket", true}, &Name{"a/b"}, &Opened{1, info}, &Handle{2},
		&List{"d", 33}, &Page{34, []Info{info, {}}}, &Window{3, 4}, &Read{5, 6, 7, 8, 9}, &Moved{10, "tls", []byte("content")},
		&Names{[]string{"a", "b"}, "none", 41}, &Target{8, "rdma"},
		&Ticket{11, bytes.Repeat([]byte{1}, TicketLen)}, &Stream{12, 13, 14, 15},
		&DataConn{true}, &Descriptor{42, 43}, &Taken{44, 45},
		&Contents{[]Content{{Info: info, Content: []byte("x"), Sum: []byte{1}}, {Status: *Fail(2, "gone", 0)}}},
		&Position{35, 36}, &Extents{[]Extent{{37, 38}, {}}, 39}, &Made{true}, &Grown{true}, &SetAttr{"d", 0o700, Time{true, -40, 2}},
		&Range{16, "sha256", 17, 18}, &Sum{[]byte{19}},
		&Create{"a", 0o600, Time{true, 20, 3}, true, true, "id"}, &Created{21, 22},
		&Put{Create{Name: "b"}, []byte("x"), "crc32c", []byte{1, 2, 3, 4}}, &Write{23, 24, 25, 26},
		&Commit{27, 28, "none", []byte{29}}, &Empty{}, &Status{}, Fail(CodeChanged, "changed", 30),
	}
}

func fresh(m Message) Message { return reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message) }

func TestMessagesReadBackAsWritten(t *testing.T) {
	for _, m := range messages() {
		got := fresh(m)
		if err := Decode(Append(nil, m), got); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: %+v became %+v, %v", m, m, got, err)
		}
	}
}

func TestCutAndPaddedMessagesAreMalformed(t *testing.T) {
	for _, m := range messages() {
		b := Append(nil, m)
		for n := range b {
			if err := Decode(b[:n], fresh(m)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%T: the first %d bytes of %d: %v", m, n, len(b), err)
			}
		}
		if err := Decode(append(b, 0), fresh(m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%T with a byte more: %v", m, err)
		}
	}
}

func TestBoundsAreChecked(t *testing.T) {
	long := strings.Repeat("x", MaxMessage)
	for what, m := range map[string]Message{
		"name":     &Name{Name: long[:MaxName+1]},
		"element":  &Info{Name: long[:MaxElement+1]},
		"negative": &Read{Len: -1},
		"content":  &Moved{Content: []byte(long[:MaxSmall+1])},
		"names":    &Names{Names: make([]string, MaxNames+1)},
		"extents":  &Extents{Extents: make([]Extent, MaxExtents+1)},
		"entries":  &Page{Entries: make([]Info, MaxPage+1)},
		"id":       &Create{ID: long[:MaxID+1]},
		"ticket":   &Ticket{Ticket: []byte(long[:TicketLen+1])},
	} {
		// The encoder keeps no bounds: this is what a hostile peer sends.
		if err := Decode(Append(nil, m), fresh(m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A list that claims to be longer than the message has bytes.
	if err := Decode([]byte{255, 3, 0, 0, 1, 2, 3}, &Names{}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if s := Fail(1, long, 0); len(s.Text) > maxText {
		t.Errorf("a text of %d bytes", len(s.Text))
	}
}

func TestSplitTakesTheStatusOff(t *testing.T) {
	b := Append(Append(nil, &Status{}), &Handle{7})
	s, rest, err := Split(b)
	var h Handle
	if err != nil || s.Code != 0 || Decode(rest, &h) != nil || h.Handle != 7 {
		t.Error(s, rest, err)
	}
	if _, _, err := Split([]byte{1, 0, 0, 0, 9}); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// What decodes encodes to the same bytes, and nothing makes a decoder panic or allocate beyond what it was given.
func FuzzDecode(f *testing.F) {
	for i, m := range messages() {
		f.Add(i, Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, kind int, b []byte) {
		all := messages()
		m := fresh(all[uint(kind)%uint(len(all))])
		if err := Decode(b, m); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if again := Append(nil, m); !bytes.Equal(again, b) {
			t.Fatalf("%T: %x became %x", m, b, again)
		}
	})
}
