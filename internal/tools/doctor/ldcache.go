package doctor

import (
	"io/fs"
	"path"
	"strings"
)

// cacheKinds are the entries that a program of an architecture may load, as ldconfig(8)
// prints them.
var cacheKinds = map[string]string{"amd64": "libc6,x86-64", "arm64": "libc6,AArch64"}

// cached returns the file that the dynamic linker's cache has for a shared object, "" if
// there is none: of "libx.so.1 (libc6,x86-64) => /lib/libx.so.1" what follows the arrow.
func (m *Machine) cached(soname string) string {
	for line := range strings.Lines(m.Output("/sbin/ldconfig", "-p")) {
		entry, file, _ := strings.Cut(strings.TrimSpace(line), ") => ")
		if strings.HasPrefix(entry, soname+" ("+cacheKinds[m.Arch]) {
			return file
		}
	}
	return ""
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
		file = m.cached(soname)
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
