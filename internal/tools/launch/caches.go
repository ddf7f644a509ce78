package launch

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"pinwheel/internal/caches"
)

// turnCachesOff returns the variables to set. One that is set already is left
// as it is; if it asks for something else there is a line about it. The command is that of
// the job.
func turnCachesOff(environ, command []string) (vars []variable, notes []string) {
	for _, c := range caches.Switches {
		have, set := Getenv(environ, c.Name)
		switch {
		case !set && c.IsOfLibfabric() && needsLibfabricsCache():
		case !set:
			vars = append(vars, variable{c.Name, c.Value})
		case have != c.Value && c.Whose != "":
			notes = append(notes,
				fmt.Sprintf("%s=%s is kept: %s may keep registrations that Pinwheel does not see; unset it to have %s",
					c.Name, have, c.Whose, c.Value))
		}
	}
	_, set := Getenv(environ, memoryEvents)
	if !set && !needsMemoryEvents(withAll(environ, vars)) && !usesUCC(environ, command) && movesMappings(environ) {
		vars = append(vars, variable{memoryEvents, "n"})
	}
	return vars, notes
}

// undo returns the variable that tells a rank which others were set for it: it takes them back where Pinwheel can
// cache nothing (mpishim/preload/caches.c).
func undo(vars []variable) variable {
	entries := make([]string, len(vars))
	for i, v := range vars {
		entries[i] = v.name + "=" + v.value
	}
	return variable{"LIBPINWHEEL_CACHES_OFF", strings.Join(entries, ":")}
}

// exists is replaced by tests.
var exists = func(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// needsLibfabricsCache reports whether this machine has a driver for a provider that registers memory without verbs.
func needsLibfabricsCache() bool {
	for _, d := range caches.Drivers {
		if exists(d.Device) {
			return true
		}
	}
	return false
}

// WithoutCaches returns an environment in which transports keep no registrations
// of their own: the one that a job under Pinwheel has.
func WithoutCaches(environ []string) []string {
	vars, _ := turnCachesOff(environ, nil)
	return withAll(environ, vars)
}

// memoryEvents makes UCX hook mmap(2) and its like, so that its caches hear
// of memory that is unmapped. Its mremap drops the new address before UCX 1.15
// (github.com/openucx/ucx/pull/8822): a program that moves memory to a place
// of its choice finds it elsewhere. Without caches nobody listens. It is left alone where that is
// mended: who asks for events that are off gets UCS_ERR_UNSUPPORTED, and may fail.
const memoryEvents = "UCX_MEM_EVENTS"

// movesMappings reports whether UCX has that fault in mremap, as it may if its version is not known.
func movesMappings(environ []string) bool {
	major, minor, known := ucxVersion(Output(environ, "ucx_info", "-v"))
	return !known || major < 1 || major == 1 && minor < 15
}

// ucxVersion reads what "ucx_info -v" prints.
func ucxVersion(text string) (major, minor int, known bool) {
	v := caches.UCXVersion.FindStringSubmatch(text)
	if v == nil {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(v[1]+v[2], "%d.%d", &major, &minor)
	return major, minor, err == nil
}

// usesUCC reports whether the job asks for UCC, which has caches of registrations in memory of
// UCX (ucs_rcache_create), for SHARP, and listens to these events.
func usesUCC(environ, command []string) bool {
	if v, _ := Getenv(environ, "OMPI_MCA_coll_ucc_enable"); v != "" && v != "0" {
		return true
	}
	if i := slices.Index(command, "coll_ucc_enable"); i >= 0 && i+1 < len(command) && command[i+1] != "0" {
		return true
	}
	isUCC := func(word string) bool { return strings.HasPrefix(word, "UCC_") }
	return slices.ContainsFunc(environ, isUCC) || slices.ContainsFunc(command, isUCC)
}

// devices are there where the drivers of accelerators are; UCX remembers which memory is
// theirs, and hears by the same events when that is freed. Replaced by tests.
var devices = caches.Accelerators

// needsMemoryEvents reports whether anything of UCX may listen: a cache of its own, or
// one that the user has asked for, or its memory of accelerators.
func needsMemoryEvents(environ []string) bool {
	for _, c := range caches.Switches {
		if have, _ := Getenv(environ, c.Name); c.Whose == "UCX" && have != c.Value {
			return true
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, "UCX_") || name == "UCX_RCACHE_ENABLE":
		case strings.Contains(name, "RCACHE"), name == "UCX_MEMTYPE_CACHE":
			if !slices.Contains([]string{"n", "no", "off", "0"}, strings.ToLower(value)) {
				return true
			}
		case name == "UCX_TLS" && !strings.HasPrefix(value, "^"):
			for _, transport := range []string{"cuda", "rocm", "gdr", "ze"} {
				if strings.Contains(","+value, ","+transport) {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(devices, exists)
}

func withAll(environ []string, vars []variable) []string {
	for _, v := range vars {
		environ = setenv(environ, v.name, v.value)
	}
	return environ
}
