package transfer

import "sync"

// queue has the tasks of a tree, the last one first: so few directories are open at a time. Tasks add tasks. It is safe
// for concurrent use.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	tasks   []func()
	open    int // tasks that wait or run, and those who hold the queue
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

func (q *queue) push(task func()) {
	q.mu.Lock()
	q.tasks = append(q.tasks, task)
	q.open++
	q.mu.Unlock()
	q.changed.Signal()
}

// hold keeps workers waiting for tasks that are still to come, until release.
func (q *queue) hold() {
	q.mu.Lock()
	q.open++
	q.mu.Unlock()
}

func (q *queue) release() {
	q.mu.Lock()
	q.open--
	q.mu.Unlock()
	q.changed.Broadcast()
}

// work does tasks until none is left. After the end of ctx tasks still run: each gives back what it holds.
func (q *queue) work() {
	for {
		q.mu.Lock()
		for len(q.tasks) == 0 && q.open > 0 {
			q.changed.Wait()
		}
		if len(q.tasks) == 0 {
			q.mu.Unlock()
			return
		}
		last := len(q.tasks) - 1
		task := q.tasks[last]
		q.tasks[last] = nil
		q.tasks = q.tasks[:last]
		q.mu.Unlock()
		task()
		q.release()
	}
}
