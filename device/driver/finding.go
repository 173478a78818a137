package driver

// Finding is something about this machine that its owner should know, with its remedy.
// agentsite doctor prints findings.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"`     // "i2c-1", "power supply", a device's name
	Says     string   `json:"says"`        // a sentence
	Do       string   `json:"do,omitzero"` // the remedy: a line to write or to run
}

// Severity ranks findings.
type Severity string

const (
	Problem Severity = "problem" // something does not work, or is not safe
	Warning Severity = "warning" // it works, and may not do so for long or in every case
	Note    Severity = "note"    // good to know; nothing is wrong
)
