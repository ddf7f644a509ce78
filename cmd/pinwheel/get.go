package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"pinwheel/comm/files"
	"pinwheel/comm/files/transfer"
	"pinwheel/internal/console"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/mem"
)

// copyFlags are those of get and put.
type copyFlags struct {
	Recursive bool          `short:"r" help:"Copy a directory with all that is in it. The destination becomes a copy of it, and keeps what else it has. With several sources, or a pattern, each goes into it under its name."`
	Parents   bool          `short:"p" help:"Make directories of the destination that are missing."`
	Strict    bool          `help:"Fail for a file that grows while it is copied. Default: copy what it had at the start, and say so."`
	Resume    bool          `help:"Go on where an earlier copy ended, if the source is the same, and leave partial files for the next one."`
	Retry     time.Duration `default:"0s" type:"seconds" placeholder:"TIME" help:"When the server is lost, how long to go on without getting on, in seconds or with a unit as in 10m: connect again, and resume. It implies --resume, and waits --timeout for a server that is not there yet. Default: 0s, not at all."`
	Verify    string        `enum:"auto,none,crc32c,sha256" default:"auto" help:"Checksum that both ends compare before a file appears: ${enum}. With -r, crc32c and sha256 are also compared of files that are there with the size and the time of their source, which are left alone otherwise. Default: auto, crc32c of what is copied."`
	Progress  string        `enum:"auto,off" default:"auto" help:"Whether to show a bar on a terminal: ${enum}. Default: auto."`
	JSON      bool          `name:"json" help:"Print one JSON object on a line in the end."`
	Client    clientFlags   `embed:""`
}

type getCmd struct {
	Paths []string  `arg:"" name:"path" help:"Files or directories of a server: HOST:PORT/PATH, unix:SOCKET:/PATH, or node:NAME:/PATH; *, ? and [] in PATH stand for several. The last path is where they go: a file, or a directory for files to go into, or - for standard output."`
	Copy  copyFlags `embed:""`
}

// outcome are the parts of the help that get and put share.
const outcome = `
A file appears under its name when all of it is there, verified and durable. Until then it is .NAME.KEY.partial beside
that; KEY is a hash of the name, the size and the version of the source, by which --resume knows whether the source is
still the same. Permissions (within the umask) and modification times are kept. Symbolic links, devices and the like
are not copied: the last line says how many were skipped. A file that changes while it is copied is copied again, three
times at most; one that grows is copied as of its start, with a line that says so. When the server is lost, --retry
connects again for as long as that takes, but no longer than its time without a byte. A server that restarts may have
other files: what has changed is copied anew. In a directory, a file that can't be copied has a line, and the others
are copied; the exit status is 1 then.
`

func (getCmd) Help() string {
	return `Copies files, or with -r directories, from pinwheel serve.
` + outcome + `
Examples:
  pinwheel get 127.0.0.1:7400/model.bin .
  pinwheel get unix:/run/user/1000/files:/model.bin /tmp/model.bin
  pinwheel get -r --resume --verify sha256 --token-file ~/token --from tcp:client:0 server:7400/data ./data
  pinwheel get '127.0.0.1:7400/logs/*.gz' 127.0.0.1:7400/model.bin /tmp
  pinwheel get --retry 10m 127.0.0.1:7400/model.bin .
  pinwheel get --json 127.0.0.1:7400/model.bin . | jq '.bytes / .seconds'
  pinwheel get 127.0.0.1:7400/logs.tar.zst - | tar --zstd -t

What goes to standard output is verified when all of it was written: if the exit status is not 0, it is of no use.`
}

func (c *getCmd) Run(e *command.Env) error {
	from, to, err := ends(c.Paths)
	if err != nil {
		return err
	}
	address, names, err := remotes(from, []string{to}, "put")
	if err != nil {
		return err
	}
	if to == standard {
		if err := c.Copy.checkStream("output"); err != nil {
			return err
		}
		return c.Copy.run(e, address, from[0], reportTo{json: e.Stderr}, func(
			ctx context.Context, client *files.Client, o transfer.Options,
		) (transfer.Result, error) {
			return transfer.GetTo(ctx, client, names[0], e.Stdout, o)
		})
	}
	return c.Copy.run(e, address, title(from), reportTo{e.Stdout, e.Stdout}, func(
		ctx context.Context, client *files.Client, o transfer.Options,
	) (transfer.Result, error) {
		return transfer.GetAll(ctx, client, names, to, o)
	})
}

type putCmd struct {
	Paths []string  `arg:"" name:"path" help:"Files or directories of this machine, or - for standard input. The last path is where they go: HOST:PORT/PATH, unix:SOCKET:/PATH, or node:NAME:/PATH; a directory, or a PATH that ends with a slash, for files to go into."`
	Copy  copyFlags `embed:""`
}

func (putCmd) Help() string {
	return `Copies files, or with -r directories, to pinwheel serve --allow-write.
` + outcome + `
Examples:
  pinwheel put model.bin 127.0.0.1:7400/models/
  pinwheel put -p *.log 127.0.0.1:7400/logs/2026/
  pinwheel put -r ./data unix:/run/user/1000/files:/data
  pinwheel put --resume --token-file ~/token --from tcp:client:0 model.bin server:7400/model.bin
  tar --zstd -c logs | pinwheel put - 127.0.0.1:7400/logs.tar.zst`
}

func (c *putCmd) Run(e *command.Env) error {
	from, to, err := ends(c.Paths)
	if err != nil {
		return err
	}
	address, names, err := remotes([]string{to}, from, "get")
	if err != nil {
		return err
	}
	report := reportTo{e.Stdout, e.Stdout}
	if from[0] == standard {
		err := c.Copy.checkStream("input")
		if c.Copy.Retry > 0 && err == nil {
			err = command.Usagef("--retry reads again what was lost, and standard input can be read once: put a file")
		}
		if err != nil {
			return err
		}
		return c.Copy.run(e, address, "standard input", report, func(
			ctx context.Context, client *files.Client, o transfer.Options,
		) (transfer.Result, error) {
			return transfer.PutFrom(ctx, client, os.Stdin, names[0], o)
		})
	}
	return c.Copy.run(e, address, title(from), report, func(
		ctx context.Context, client *files.Client, o transfer.Options,
	) (transfer.Result, error) {
		return transfer.PutAll(ctx, client, from, names[0], o)
	})
}

// checkStream finds flags that make no sense with standard input or output.
func (f *copyFlags) checkStream(stream string) error {
	switch {
	case f.Recursive:
		return command.Usagef("- is standard %s, where no directory goes (-r): one called - is ./-", stream)
	case f.Resume:
		return command.Usagef("- is standard %s, of which no earlier copy has left anything (--resume): a file called - is ./-",
			stream)
	}
	return nil
}

// reportTo says where the result goes. nil: it is not told.
type reportTo struct{ text, json io.Writer }

// copied is the result of a copy as --json has it.
type copied struct {
	transfer.Result
	Seconds   float64 `json:"seconds"`
	Transport string  `json:"transport"`
	Verify    string  `json:"verify"`
}

// run connects, copies and says how it went.
func (f *copyFlags) run(
	e *command.Env, address, what string, to reportTo,
	copyAll func(context.Context, *files.Client, transfer.Options) (transfer.Result, error),
) (err error) {
	if f.Retry < 0 {
		return command.Usagef("--retry must be 0s or more")
	}
	var c *connection
	sum := files.Sum(f.Verify)
	if f.Verify == "auto" {
		sum = files.CRC32C
	}
	o := transfer.Options{
		Recursive: f.Recursive, Parents: f.Parents, Strict: f.Strict, Resume: f.Resume,
		Verify: sum, Compare: f.Verify == string(sum) && sum != files.NoSum, Retry: f.Retry,
		Redial: func(ctx context.Context) (*files.Client, error) { return c.redial(ctx) },
	}
	if err := o.EnsureDefaults(); err != nil {
		return command.AsUsage(err)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	if c, err = f.Client.connect(ctx, e, address, f.Retry > 0); err != nil {
		return err
	}
	defer c.Close() // what was copied is there
	bar := watch(e, o.Meter, what, f.Progress == "auto" && (to.text != nil || !term.IsTerminal(unix.Stdout)))
	o.Failed, o.Warn = bar.failed, bar.note
	began := time.Now()
	r := copied{Verify: string(sum)}
	r.Result, err = copyAll(ctx, c.Client, o)
	gone := transfer.Lost(err)
	if err = callFault(address, err); gone && f.Retry > 0 {
		err = fmt.Errorf("%w (it was tried again for %v)", err, f.Retry)
	}
	r.Seconds, r.Transport = time.Since(began).Seconds(), c.Transport()
	bar.stop()
	switch {
	case ctx.Err() != nil: // end tells
	case f.JSON:
		if jsonErr := json.NewEncoder(to.json).Encode(r); err == nil {
			err = jsonErr
		}
	case err == nil && to.text != nil:
		r.print(to.text, what)
	}
	return err
}

// print says in one line what was copied.
func (r *copied) print(w io.Writer, what string) {
	noun := "files"
	if r.Files == 1 {
		noun = "file"
	}
	more := ""
	if r.Unchanged > 0 {
		more = fmt.Sprintf("; unchanged: %d", r.Unchanged)
	}
	if r.Skipped > 0 {
		more += fmt.Sprintf("; skipped: %d (links and special files)", r.Skipped)
	}
	fmt.Fprintf(w, "%s: %d %s, %s in %.1f s by %s%s\n",
		console.Printable(what), r.Files, noun, mem.FormatBytes(uint64(r.Bytes)), r.Seconds, r.Transport, more)
}
