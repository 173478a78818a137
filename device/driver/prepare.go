package driver

// Preparer is a Config whose device needs the superuser before it can be opened, once
// after each start of the board. The node never runs it; agentsite prepare does.
type Preparer interface {
	// Prepare does the missing steps and returns them, such as "export channel 1 of pwmchip0"; none
	// when all was done already. It opens no device.
	Prepare(p Preparation) (did []string, err error)
	// Prepares returns the steps that Prepare may ever do, each with all that it depends on, exactly: equal
	// steps do the same. There are none where it does nothing.
	Prepares() []string
}

// Preparation holds the parameters of Prepare.
type Preparation struct {
	Root  string // the folder with sys and dev in it; "" is the machine's
	Group string // the name or number of the group that may use the result
	Ask   bool   // change nothing, only return the missing steps
}
