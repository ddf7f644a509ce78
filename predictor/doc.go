// Package predictor learns when each registered region is needed next.
//
// A Predictor observes the completed uses of regions in the order in which the
// helper thread sees them. Asked for one region, it says when its next use is
// expected. Implementations: Paper (call-site signature with the shortest
// period seen), Last (the last interval), and Pinwheel, the default.
//
// Predictors decide nothing: the Scheduler tells them which needs were late, and
// how long a registration takes. They read no clock; callers pass every time. A Predictor belongs to
// one helper thread and is not safe for concurrent use.
package predictor
