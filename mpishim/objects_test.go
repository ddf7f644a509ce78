package mpishim

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// objectFlags compile the C files of the libraries, as mpishim.mk does, but without debugging information, which takes a
// quarter of the time.
var objectFlags = []string{"-O2", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fno-omit-frame-pointer",
	"-Wall", "-Wextra", "-Werror", "-Icore", "-Ipreload", "-Iinclude", "-I../regcache", "-I../verbs/rdma/internal/ibv"}

// cSources are the C files of some folders.
func cSources(folders ...string) (sources []string, err error) {
	for _, folder := range folders {
		files, err := filepath.Glob(folder + "/*.c")
		if err != nil {
			return nil, err
		}
		sources = append(sources, files...)
	}
	return sources, nil
}

// objectOf is the object file in dir of a source.
func objectOf(dir, source string) string {
	return filepath.Join(dir, strings.ReplaceAll(strings.TrimSuffix(source, ".c"), "/", "-")+".o")
}

// compileObjects compiles the C files of folders into dir, one on each processor, with flags beside the usual ones.
func compileObjects(dir string, folders []string, flags ...string) (objects []string, err error) {
	sources, err := cSources(folders...)
	if err != nil {
		return nil, err
	}
	// The wrappers take longer than all else together: they begin first.
	if i := slices.Index(sources, "preload/mpi.c"); i > 0 {
		sources[0], sources[i] = sources[i], sources[0]
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, source := range sources {
		objects = append(objects, objectOf(dir, source))
		g.Go(func() error {
			return compile("cc",
				append(append(slices.Clone(objectFlags), flags...), "-c", "-o", objectOf(dir, source), source)...)
		})
	}
	return objects, g.Wait()
}

// objectsOf returns those of the objects whose sources are in one of the folders.
func objectsOf(objects []string, folders ...string) []string {
	return slices.DeleteFunc(slices.Clone(objects), func(o string) bool {
		return !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(filepath.Base(o), f+"-") })
	})
}
