package doctor

import (
	"encoding/binary"
	"testing"
)

// fakeCache makes a cache for amd64 of names and files, by turns.
func fakeCache(pairs ...string) []byte {
	return cacheWith(0x0303, pairs...)
}

func cacheWith(flags uint32, pairs ...string) []byte {
	entries := len(pairs) / 2
	data := make([]byte, cacheHeaderBytes+entries*cacheEntryBytes)
	copy(data, cacheMagic)
	binary.LittleEndian.PutUint32(data[len(cacheMagic):], uint32(entries))
	for i, s := range pairs {
		at := cacheHeaderBytes + i/2*cacheEntryBytes
		binary.LittleEndian.PutUint32(data[at:], flags)
		binary.LittleEndian.PutUint32(data[at+4+4*(i%2):], uint32(len(data)))
		data = append(append(data, s...), 0)
	}
	return data
}

func TestCacheNamesFilesOfTheArchitecture(t *testing.T) {
	data := append([]byte("ld.so-1.7.0\x00an older table"), fakeCache("libx.so.1", "/lib64/libx.so.1", "liby.so.2", "/lib64/liby.so.2", "libx.so.1", "/other/libx.so.1")...)
	got := parseCache(data, "amd64")
	if len(got) != 2 || got["libx.so.1"] != "/lib64/libx.so.1" || got["liby.so.2"] != "/lib64/liby.so.2" {
		t.Errorf("%v", got)
	}
	if got := parseCache(cacheWith(0x0003, "libx.so.1", "/lib32/libx.so.1"), "amd64"); len(got) != 0 {
		t.Errorf("a file of 32 bits: %v", got)
	}
}

// A damaged file must not take the report with it.
func FuzzParseCache(f *testing.F) {
	f.Add(fakeCache("libx.so.1", "/lib64/libx.so.1"))
	f.Add([]byte(cacheMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, file := range parseCache(data, "amd64") {
			if len(name) > len(data) || len(file) > len(data) {
				t.Errorf("%q: %q", name, file)
			}
		}
	})
}
