package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"pinwheel/comm/vmmc"
)

// Names of the ends, and what all of them know.
const (
	senderName   = "sender"
	receiverName = "receiver"
	tokenEnv     = "BENCH_FILES_TOKEN"
)

// tcpNode are the options of a node on a loopback address.
func tcpNode(name string) vmmc.Options {
	return vmmc.Options{
		Name: name, Token: os.Getenv(tokenEnv), Listen: []string{"tcp:127.0.0.1:0"},
		Heartbeat: time.Minute, // many ends share this machine, and maybe one processor with much else
		Warn:      func(m string) { say("%s: %s", name, m) },
	}
}

type receiveCmd struct {
	Bytes []int64 `arg:"" help:"Bytes of each window."`
}

// Run implements the command receive: it says where it is, and exports a window for each size, by the numbers from 1.
func (c *receiveCmd) Run() error {
	n, err := vmmc.Open(tcpNode(receiverName))
	if err != nil {
		return err
	}
	for i, bytes := range c.Bytes {
		var memory []byte
		if memory, err = n.Alloc(uint64(bytes)); err != nil {
			break
		}
		sender := vmmc.Permissions{Peers: []string{senderName}}
		if _, err = n.Export(uint32(i+1), memory, sender, vmmc.ExportOptions{}); err != nil {
			break
		}
	}
	if err == nil {
		fmt.Println(n.Addresses()[0])
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	return errors.Join(err, n.Close())
}

// receiver is the process of a receiveCmd.
type receiver struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
}

// startReceiver starts one. It ends with ctx.
func startReceiver(ctx context.Context, windows ...int64) (*receiver, error) {
	args := []string{"receive"}
	for _, w := range windows {
		args = append(args, fmt.Sprint(w))
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	r := &receiver{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if r.address = strings.TrimSpace(line); err != nil {
		return nil, errors.Join(fmt.Errorf("the receiver says %q: %w", line, err), r.close())
	}
	return r, nil
}

// close ends the process. What has gone wrong there, it has said.
func (r *receiver) close() error {
	err := r.stdin.Close()
	_ = r.cmd.Wait()
	return err
}
