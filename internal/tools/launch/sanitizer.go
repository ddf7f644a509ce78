package launch

import (
	"fmt"
	"strings"
)

// sanitizerOf returns the path of the runtime of AddressSanitizer that a program is linked with, ""
// if there is none, or says in one line why it can't be preloaded. That runtime ends the process if
// anything is loaded before it. Those of the other sanitizers do not mind, nor does one that is
// linked statically.
func sanitizerOf(name string, objects []object) (path, why string) {
	for _, o := range objects {
		if !strings.HasPrefix(o.name, "libasan.") && !strings.HasPrefix(o.name, "libclang_rt.asan") {
			continue
		}
		if o.path == "" || strings.ContainsAny(o.path, ": ") {
			return "", fmt.Sprintf("%s needs %s, which must be preloaded first, but LD_PRELOAD can't hold its path %q; "+
				"link it with -static-libasan", name, o.name, o.path)
		}
		return o.path, ""
	}
	return "", ""
}
