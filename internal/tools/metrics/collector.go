package metrics

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"pinwheel/internal/tools/monitor"
)

// rankLabels tell the ranks of a node apart.
var rankLabels = []string{"job_id", "rank", "pid", "manager"}

// collector takes a look at the node whenever it is asked. It implements prometheus.Collector.
type collector struct {
	source     monitor.Source
	rank       []*prometheus.Desc // of ofRank
	process    []*prometheus.Desc // of ofProcess
	server     []*prometheus.Desc // of ofServer
	info       *prometheus.Desc
	budget     *prometheus.Desc
	ranks      *prometheus.Desc
	unreadable *prometheus.Desc
}

// Registry returns what gathers the metrics of all jobs that the source knows.
func Registry(source monitor.Source) *prometheus.Registry {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	c := &collector{
		source: source,
		info: describe("rank_info", "1 for each process under Pinwheel, with its program.",
			append(rankLabels, "program")...),
		budget: describe("node_budget_bytes",
			"PINWHEEL_NODE_BUDGET: what the ranks of the job may pin on this node.", "job_id"),
		ranks:      describe("ranks", "Processes of the job that have used Pinwheel on this node and still run.", "job_id"),
		unreadable: describe("unreadable_jobs", "Jobs on this node whose shared memory makes no sense."),
	}
	for _, m := range ofRank {
		c.rank = append(c.rank, describe(m.name, m.help, rankLabels...))
	}
	for _, m := range ofProcess {
		c.process = append(c.process, describe(m.name, m.help, processLabels...))
	}
	for _, m := range ofServer {
		c.server = append(c.server, describe(m.name, m.help, serverLabels...))
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	return r
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(c.rank, c.process, c.server, []*prometheus.Desc{c.info, c.budget, c.ranks, c.unreadable}) {
		to <- d
	}
}

// Collect implements prometheus.Collector. If there is no look, the scrape fails.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	look, err := c.source()
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.unreadable, err)
		return
	}
	to <- prometheus.MustNewConstMetric(c.unreadable, gauge, float64(len(look.Unreadable)))
	for i := range look.VMMC {
		c.collectProcess(to, &look.VMMC[i])
	}
	for i := range look.Files {
		c.collectServer(to, &look.Files[i])
	}
	for i := range look.Jobs {
		j := &look.Jobs[i]
		to <- prometheus.MustNewConstMetric(c.ranks, gauge, float64(len(j.Ranks)), j.ID)
		if j.BudgetBytes != nil {
			to <- prometheus.MustNewConstMetric(c.budget, gauge, float64(*j.BudgetBytes), j.ID)
		}
		for k := range j.Ranks {
			c.collectRank(to, j.ID, &j.Ranks[k])
		}
	}
}

func (c *collector) collectRank(to chan<- prometheus.Metric, job string, r *monitor.Rank) {
	labels := []string{job, strconv.Itoa(r.Rank), strconv.Itoa(r.PID), strconv.Itoa(r.Manager)}
	to <- prometheus.MustNewConstMetric(c.info, gauge, 1, append(labels, r.Program)...)
	for i, m := range ofRank {
		if v, ok := m.value(r); ok {
			to <- prometheus.MustNewConstMetric(c.rank[i], m.kind, v, labels...)
		}
	}
}
