package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"pinwheel/comm/files"
	"pinwheel/comm/files/transfer"
	"pinwheel/internal/console"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
)

type lsCmd struct {
	Remote string      `arg:"" help:"File or directory of a server: HOST:PORT/PATH, unix:SOCKET:/PATH, or node:NAME:/PATH."`
	Long   bool        `short:"l" help:"Print permissions, size and modification time, too."`
	JSON   bool        `name:"json" help:"Print one JSON object."`
	Client clientFlags `embed:""`
}

func (lsCmd) Help() string {
	return `Lists a directory of pinwheel serve, or describes a file. In the text, what no terminal shows is written \n or \x1b.

Examples:
  pinwheel ls 127.0.0.1:7400
  pinwheel ls -l unix:/run/user/1000/files:/models
  pinwheel ls --json 127.0.0.1:7400/models | jq -r '.entries[] | select(.size > 1e9) | .name'`
}

// entry is a file as --json has it.
type entry struct {
	Name     string    `json:"name"`
	Bytes    []byte    `json:"name_bytes,omitempty"` // base64, if the name is not UTF-8
	Type     string    `json:"type"`                 // file, directory, symlink or other
	Mode     string    `json:"mode"`                 // permissions, octal
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	ETag     string    `json:"etag,omitempty"`
}

func (c *lsCmd) Run(e *command.Env) error {
	address, name, err := transfer.ParseRemote(c.Remote)
	if err != nil {
		return command.AsUsage(err)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	client, err := c.Client.connect(ctx, e, address, false)
	if err != nil {
		return err
	}
	defer client.Close() // it has answered
	all, err := transfer.List(ctx, client.Client, name)
	if err != nil {
		return callFault(address, err)
	}
	if c.JSON {
		entries := []entry{}
		for _, i := range all {
			entries = append(entries, entryOf(i))
		}
		return json.NewEncoder(e.Stdout).Encode(struct {
			Entries []entry `json:"entries"`
		}{entries})
	}
	for _, i := range all {
		if c.Long {
			fmt.Fprintf(e.Stdout, "%s %14d %s ", lsMode(i.Mode()), i.Size(), i.ModTime().Format("2006-01-02 15:04:05"))
		}
		fmt.Fprintln(e.Stdout, console.Printable(i.Name()))
	}
	return nil
}

func entryOf(i files.Info) entry {
	kind := "other"
	switch {
	case i.Mode().IsRegular():
		kind = "file"
	case i.IsDir():
		kind = "directory"
	case i.Type() == fs.ModeSymlink:
		kind = "symlink"
	}
	e := entry{
		Name: i.Name(), Type: kind, Mode: fmt.Sprintf("%04o", i.Mode().Perm()), Size: i.Size(),
		Modified: i.ModTime().UTC(), ETag: string(i.ETag()),
	}
	if !utf8.ValidString(e.Name) {
		e.Bytes = []byte(e.Name)
	}
	return e
}

// lsMode is a mode as ls(1) shows it.
func lsMode(m fs.FileMode) string {
	kind := "?"
	switch m.Type() {
	case 0:
		kind = "-"
	case fs.ModeDir:
		kind = "d"
	case fs.ModeSymlink:
		kind = "l"
	case fs.ModeNamedPipe:
		kind = "p"
	case fs.ModeSocket:
		kind = "s"
	case fs.ModeDevice:
		kind = "b"
	case fs.ModeDevice | fs.ModeCharDevice:
		kind = "c"
	}
	return kind + m.Perm().String()[1:]
}
