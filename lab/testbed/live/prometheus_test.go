package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
)

const (
	pinwheel = "../../../bin/pinwheel"
	ranks    = 2
)

// A real Prometheus scrapes the metrics of a real MPI job, and node_exporter those of the file.
func TestPrometheusScrapesAJob(t *testing.T) {
	if os.Getenv("PINWHEEL_TEST_PROMETHEUS") == "" {
		t.Skip("make test-prometheus")
	}
	testwait.BoundAt(t, 5*time.Minute)
	dir := t.TempDir()
	job := startJob(t, dir)
	port, prometheusPort, nodePort := freePort(t), freePort(t), freePort(t)
	start(t, pinwheel, "metrics", "--listen", "127.0.0.1:"+port)
	textfile := filepath.Join(dir, "textfile", "pinwheel.prom")
	start(t, pinwheel, "metrics", "--textfile", textfile, "--interval", "1s")

	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: pinwheel\n  static_configs:\n" +
		"  - targets: ['127.0.0.1:" + port + "']\n"
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address=127.0.0.1:"+prometheusPort, "--log.level=error")
	start(t, "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
		"--collector.textfile.directory="+filepath.Dir(textfile), "--web.listen-address=127.0.0.1:"+nodePort)

	p := prometheus{t, "http://127.0.0.1:" + prometheusPort}
	ours := `{job="pinwheel",job_id="` + job + `"}`
	p.until("up", `up{job="pinwheel"}`, 1, func(v float64) bool { return v == 1 })
	p.until("the ranks", "pinwheel_ranks"+ours, 1, func(v float64) bool { return v == ranks })
	p.until("pinned memory", "pinwheel_pinned_bytes"+ours, ranks, func(v float64) bool { return v > 1<<20 && v < 1<<30 })
	p.until("a peak", "pinwheel_peak_pinned_bytes"+ours, ranks, func(v float64) bool { return v > 1<<20 && v < 1<<30 })
	p.until("hits", "rate(pinwheel_hits_total"+ours+"[10s])", ranks, func(v float64) bool { return v > 1 && v < 1e6 })
	p.until("first uses", "pinwheel_first_registrations_total"+ours, ranks,
		func(v float64) bool { return v >= 4 && v < 1000 })
	p.until("a helper", "pinwheel_helper_cpu_seconds_total"+ours, ranks, func(v float64) bool { return v > 0 && v < 300 })
	p.until("the start", "time() - pinwheel_start_time_seconds"+ours, ranks,
		func(v float64) bool { return v > 0 && v < 600 })
	p.until("news", "pinwheel_state_age_seconds"+ours, ranks, func(v float64) bool { return v < 30 })
	p.until("programs", `pinwheel_rank_info{program="halo",job_id="`+job+`"}`, ranks,
		func(v float64) bool { return v == 1 })
	for _, counter := range []string{"hits_total", "late_uses_total", "helper_cpu_seconds_total",
		"stall_seconds_total", "predictions_total"} {
		p.until("no fall of "+counter, "resets(pinwheel_"+counter+ours+"[1m])", ranks, func(v float64) bool { return v == 0 })
	}
	checkText(t)

	var body string
	testwait.Until(t, "node_exporter's metrics", func() bool {
		body, _ = get("http://127.0.0.1:" + nodePort + "/metrics")
		return strings.Contains(body, `pinwheel_pinned_bytes{job_id="`+job+`"`)
	}, func() any { return body })
	if !strings.Contains(body, "\nnode_textfile_scrape_error 0\n") {
		t.Errorf("node_exporter can't read the file:\n%s", body)
	}
	endJob(t)
	p.until("no rank", "count(pinwheel_pinned_bytes"+ours+") or vector(0)", 1, func(v float64) bool { return v == 0 })
	p.until("up", `up{job="pinwheel"}`, 1, func(v float64) bool { return v == 1 })
}

// running is the job of startJob.
var running *stack.Running

// startJob starts a job that goes on until endJob, and returns its ID once all of its ranks have published something.
func startJob(t *testing.T, dir string) (id string) {
	device, err := stack.OpenDevice("../../../out/softverbs")
	if err != nil {
		t.Fatal(err)
	}
	s := stack.All[0]
	if why := s.Missing(device); why != "" {
		t.Fatal(why)
	}
	program := filepath.Join(dir, "halo")
	if err := s.Compile(program, filepath.Join(sources, "halo.c")); err != nil {
		t.Fatal(err)
	}
	under, err := filepath.Abs(pinwheel)
	if err != nil {
		t.Fatal(err)
	}
	running, err = stack.Job{
		Stack: s, Device: device, Ranks: ranks, Program: []string{program, "1000000", "2097152", "20"},
		Under: []string{under, "run", "--"},
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endJob(t) })
	testwait.Until(t, "all ranks have published", func() bool {
		out, _ := exec.Command(pinwheel, "top", "--json").Output() // it fails while there is none
		var look struct {
			Jobs []struct {
				Job   string
				Ranks []struct{ PID int }
			}
		}
		_ = json.Unmarshal(out, &look)
		pids := running.Ranks()
		for _, j := range look.Jobs {
			if len(j.Ranks) == ranks && slices.Contains(pids, j.Ranks[0].PID) {
				id = j.Job
			}
		}
		return id != ""
	})
	return id
}

// endJob kills the job, which may be done already.
func endJob(t *testing.T) {
	if running == nil {
		return
	}
	res, err := running.Wait(0)
	running = nil
	if err != nil || !res.Late || res.Output != "" {
		t.Errorf("the job ended by itself, or complains: %+v, %v", res, err)
	}
}

// start starts a server that is killed in the end, also that of this process.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // the output says what was wrong
		late.Stop()
		if t.Failed() || !isPrometheus(name) && out.Len() > 0 {
			t.Errorf("%s says:\n%s", name, out.String())
		}
	})
}

// isPrometheus reports whether a program logs what is no problem.
func isPrometheus(name string) bool { return strings.HasPrefix(name, "prometheus") }

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func get(address string) (string, error) {
	r, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(text), err
}

// checkText has promtool check what the command prints.
func checkText(t *testing.T) {
	text, err := exec.Command(pinwheel, "metrics").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v, %s", err, out)
	}
}

// prometheus is the API of a server.
type prometheus struct {
	t    *testing.T
	base string
}

// until waits until a query returns so many series, each with a value that is right.
func (p prometheus) until(what, query string, series int, right func(float64) bool) {
	p.t.Helper()
	var body string
	testwait.Until(p.t, what+": "+query, func() bool {
		time.Sleep(200 * time.Millisecond) // each look is a request
		body, _ = get(p.base + "/api/v1/query?query=" + url.QueryEscape(query))
		var answer struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
				}
			}
		}
		if json.Unmarshal([]byte(body), &answer) != nil || len(answer.Data.Result) != series {
			return false
		}
		for _, r := range answer.Data.Result {
			v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
			if err != nil || !right(v) || r.Metric["exported_job"] != "" {
				return false
			}
		}
		return true
	}, func() any { return body })
}
