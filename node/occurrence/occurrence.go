// Package occurrence decides that something has happened at a site that people or programs want to be
// told of. It decides each once: notifications, and later events, push and MQTT, have the same
// occurrences under the same IDs, and make their own words of them.
package occurrence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// Kind is a kind of occurrences.
type Kind string

const (
	Stop       Kind = "stop"       // the emergency stop
	Device     Kind = "device"     // a device is not read any more
	Lease      Kind = "lease"      // an output returned to safe before the end of its lease
	Effect     Kind = "effect"     // an output had not the effect that is expected of it
	Approval   Kind = "approval"   // a call waits for an owner
	Permission Kind = "permission" // a permission ends soon
	SignIn     Kind = "sign_in"    // a program asks to sign in
	Wish       Kind = "wish"       // a program that signed in asks for more than it may
	Supply     Kind = "supply"     // the board's own power supply is too weak
	PowerOff   Kind = "power_off"  // the machine will be powered off, as its configuration says
	Rollback   Kind = "rollback"   // a new configuration or version was not kept
)

// Task is a step of a task: it asks something, or it has ended. Of is its ID, Who asked for it. It is told to events
// alone: a notification about each task is for its asker to choose.
const Task Kind = "task"

// Kinds are all of them that notifications can be about.
var Kinds = []Kind{Stop, Device, Lease, Effect, Approval, Permission, SignIn, Wish, Supply, PowerOff, Rollback}

// State says whether an occurrence lasts.
type State string

const (
	Once   State = "once"
	Begins State = "begins" // it lasts until Ends, of the same Kind and Of
	Ends   State = "ends"   // it does not last, or not any more: who knows of no beginning drops it
)

// Removed is why a device is not lost any more that is not in the configuration now.
const Removed = "it was removed"

// Occurrence is something that has happened. Fields that its kind does not have are zero.
type Occurrence struct {
	ID   string // the same for everybody who is told of it
	Kind Kind
	// Of is a device, an output, the handle of an approval or a wish, or the ID of a grant; "" for the others.
	Of    string
	State State
	At    time.Time // by the site's clock
	Sure  bool      // that was known
	// Who held the output, asks, or has the permission: the ID of a principal.
	Who string
	// Because is why an output returned or a device is lost: a text of the guard or of a driver; or Removed. Of a
	// power-off it is its condition, or why it is not true any more. Of a rollback it says what was not kept, and why.
	Because string
	Point   string        // of a lost device, whose reading has Because
	Tool    string        // that an approval or a wish is for
	Args    []byte        // of it, JSON
	Agent   string        // that works on a task
	Step    string        // the state of a task
	Asks    string        // the question of a task
	Left    time.Duration // until the end of an approval, a wish, a permission, or the machine's power

	until time.Time // when Left is over; zero without one
}

// Key is equal for occurrences of the same thing.
func (o *Occurrence) Key() string { return string(o.Kind) + " " + o.Of }

// number sets the ID of an occurrence. about tells apart two of one kind, thing, state and time.
func (o *Occurrence) number(about string) {
	sum := sha256.Sum256(fmt.Appendf(nil, "agentsite occurrence\x00%s\x00%s\x00%s\x00%s", o.Kind, o.Of, o.State, about))
	o.ID = hex.EncodeToString(sum[:12])
}

// Return reports whether an output that was held, or was not, returned to safe with a change, and whether its lease was
// cut short by that.
func Return(held bool, c device.Change) (returned, broke bool) {
	returned = held && c.Holder == ""
	return returned, returned && c.Cause != "" && guard.Broke(c.Cause)
}
