package pinwheel

import "pinwheel/predictor"

// Predictions returns how well the helper's predictions matched the uses that
// followed. The helper grades them without a lock, so this is for the time
// after Close: before, and without a helper, the grade is empty.
func (m *Manager) Predictions() predictor.Grade {
	if !m.closed.Load() || m.helper == nil {
		return predictor.Grade{}
	}
	_ = m.helper.Close() // waits for a Close under way; it does not fail
	return m.graded.Grade()
}
