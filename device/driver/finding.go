package driver

// Finding is something about this machine that its owner should know, and what
// mends it. Rooms return findings; agentsite doctor prints them.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"`     // "i2c-1", "power supply", a device's name
	Says     string   `json:"says"`        // a sentence
	Do       string   `json:"do,omitzero"` // what mends it: a line to write or to run
}

// Severity is how much a finding matters.
type Severity string

const (
	Problem Severity = "problem" // something does not work, or is not safe
	Warning Severity = "warning" // it works, and may not do so for long or in every case
	Note    Severity = "note"    // good to know; nothing is wrong
)
