package config

import "time"

// Approvals is the section of that name.
type Approvals struct {
	Wait time.Duration `json:"wait,omitempty" jsonschema:"how long a call that needs an owner's approval waits for it, from 2m to 24h; 2m when not written"`
}

const minWait, maxWait = 2 * time.Minute, 24 * time.Hour

// approvals checks the written values of the section.
func (r *report) approvals(e entry, a Approvals) {
	if at, _, ok := e.scalar("wait"); ok && (a.Wait < minWait || a.Wait > maxWait) {
		r.fail(at, e.key, "wait must be from 2m to 24h")
	}
}
