package doctor

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"path"
	"strings"
)

// The dynamic linker's cache, /etc/ld.so.cache: struct cache_file_new and
// file_entry_new of glibc's sysdeps/generic/dl-cache.h, since glibc 2.2; older
// systems have another table before it. Offsets count from its magic.
const (
	cacheMagic       = "glibc-ld.so.cache1.1"
	cacheHeaderBytes = 48
	cacheEntryBytes  = 24
)

// cacheFlags are the entries that a program of an architecture may load:
// FLAG_ELF_LIBC6 and the FLAG_*_LIB64 of dl-cache.h.
var cacheFlags = map[string]uint32{"amd64": 0x0303, "arm64": 0x0a03}

// parseCache returns the files by the names under which programs ask for
// them. What is damaged is left out.
func parseCache(data []byte, arch string) map[string]string {
	at := bytes.Index(data, []byte(cacheMagic))
	if at < 0 || len(data)-at < cacheHeaderBytes {
		return nil
	}
	data = data[at:]
	text := func(offset uint32) string {
		if uint64(offset) >= uint64(len(data)) {
			return ""
		}
		s, _, _ := bytes.Cut(data[offset:], []byte{0})
		return string(s)
	}
	files := map[string]string{}
	entries := data[cacheHeaderBytes:]
	for range binary.LittleEndian.Uint32(data[len(cacheMagic):]) {
		if len(entries) < cacheEntryBytes {
			break
		}
		flags := binary.LittleEndian.Uint32(entries)
		name, file := text(binary.LittleEndian.Uint32(entries[4:])), text(binary.LittleEndian.Uint32(entries[8:]))
		entries = entries[cacheEntryBytes:]
		if want, known := cacheFlags[arch]; known && flags != want || files[name] != "" {
			continue
		}
		files[name] = file
	}
	return files
}

// object returns where the dynamic linker finds a shared object, with
// symbolic links of the last name followed; "" if it doesn't.
func (m *Machine) object(soname string) string {
	file := ""
	for _, dir := range strings.Split(m.getenv("LD_LIBRARY_PATH"), ":") {
		if dir != "" && m.exists(path.Join(dir, soname)) {
			file = path.Join(dir, soname)
			break
		}
	}
	if file == "" {
		file = parseCache([]byte(m.raw("etc/ld.so.cache")), m.Arch)[soname]
	}
	if file == "" || !m.exists(file) {
		return ""
	}
	target, err := fs.ReadLink(m.Root, rooted(file))
	if err == nil && !strings.Contains(target, "/") {
		return path.Join(path.Dir(file), target)
	}
	return file
}

func rooted(file string) string { return strings.TrimPrefix(path.Clean(file), "/") }

func (m *Machine) exists(file string) bool {
	_, err := fs.Stat(m.Root, rooted(file))
	return err == nil
}

// raw returns a file as it is, "" if it can't be read.
func (m *Machine) raw(name string) string {
	text, _ := fs.ReadFile(m.Root, name)
	return string(text)
}
