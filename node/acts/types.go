package acts

import (
	"slices"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/op"
	"agentsite/agents/rule/trial"
	"agentsite/node/hosted"
	"agentsite/node/journal"

	"github.com/go-json-experiment/json/jsontext"
)

// The owner's methods. For everybody else they do not exist.
const (
	ResetAct       op.Name[None, None]                    = "owner/reset"     // ends the emergency stop
	ReloadAct      op.Name[None, None]                    = "owner/reload"    // reads the configuration again
	TakeOverAct    op.Name[Name, None]                    = "owner/take-over" // makes the owner the holder of an output
	RequestsAct    op.Name[None, waitingCalls]            = "owner/requests"  // lists the calls and the programs that wait for an owner
	ApproveAct     op.Name[Name, None]                    = "owner/approve"   // by the call's handle
	DenyAct        op.Name[Name, None]                    = "owner/deny"      // by the handle of a call, a sign-in or a wish
	SignInAct      op.Name[NewSignIn, None]               = "owner/sign-in"   // lets a program sign in, with a grant that an owner signed
	AccessAct      op.Name[AccessParams, Access]          = "owner/access"    // lists owners, grants and tokens
	TokenAct       op.Name[NewToken, MadeToken]           = "owner/token"     // makes a token for a grant that an owner signed
	GrantAct       op.Name[Signed, None]                  = "owner/grant"     // stores a grant that an owner signed
	PhoneAct       op.Name[Name, PhoneKey]                = "owner/phone"     // waits for a phone that shows a code
	RevokeAct      op.Name[Name, None]                    = "owner/revoke"    // ends a token, a grant, or all permissions of a key
	AddOwnerAct    op.Name[Name, None]                    = "owner/add-owner" // by a did:key, as the next
	RemoveOwnerAct op.Name[Name, None]                    = "owner/remove-owner"
	TimeAct        op.Name[TimeNow, Reached]              = "owner/time"     // sets the site's time by an owner's clock
	RecoveryAct    op.Name[None, MadeRecovery]            = "owner/recovery" // makes a code for when every owner's key is lost
	RecoverAct     op.Name[Recovery, None]                = "owner/recover"  // uses the code on the site's own machine
	RoutesAct      op.Name[None, Routes]                  = "owner/routes"   // lists everything that listens
	HealthAct      op.Name[None, Health]                  = "owner/health"
	PublicAct      op.Name[LookAtPublic, PublicState]     = "owner/public"  // tells how the public name is
	JournalAct     op.Name[journal.Filter, journal.Page]  = "owner/journal" // answers a page of the journal
	FindAct        op.Name[Wanted, foundAll]              = "owner/find"    // finds other sites of the realm
	ImportAct      op.Name[Import, imported]              = "owner/import"  // adds past readings of a measurement
	AgentsAct      op.Name[None, hosted.Agents]           = "owner/agents"  // lists the agents that the site hosts
	PauseAct       op.Name[Name, None]                    = "owner/pause"   // stops one of them, until the next
	ResumeAct      op.Name[Name, None]                    = "owner/resume"
	TryAct         op.Name[trial.Request, trial.Result]   = "owner/try"      // tries rules over the past
	OfferAct       op.Name[agent.Acceptance, agent.Offer] = "owner/offer"    // asks another program what tools it offers, and accepts them as they were shown
	SimulateAct    op.Name[Simulated, None]               = "owner/simulate" // tells a fake of a simulated site what to read
	ConnectAct     op.Name[Name, agent.Connected]         = "owner/connect"  // stores another site's grant, by its text, for the agents of this one
)

// None is a request, or an answer, without members.
type None = op.None

// Name says what a method is about: an output, a handle, a key, a token or a grant.
type Name struct {
	Name string `json:"name,omitzero"`
}

// waitingCalls answers RequestsAct.
type waitingCalls struct {
	Requests []Request `json:"requests"`
	SignIns  []SignIn  `json:"sign_ins,omitzero"`
	Wishes   []Wish    `json:"wishes,omitzero"`
}

// Wish is a call that was refused because the permission of a program that signed in does not cover it.
type Wish struct {
	Handle string         `json:"handle"`
	Token  string         `json:"token"`      // its name
	Client string         `json:"client"`     // as it calls itself
	Host   string         `json:"returns_to"` // to which its user was sent back
	Who    string         `json:"who"`        // the program, as the journal has it
	Tool   string         `json:"tool"`
	Args   jsontext.Value `json:"arguments,omitzero"` // of the last time; left out where they are long
	Times  int            `json:"times"`
	Ago    float64        `json:"seconds_ago"` // the last time
	Left   float64        `json:"seconds_left"`
	May    string         `json:"may"`            // the permission of the token with what the call needs added
	Until  time.Time      `json:"until,omitzero"` // when the permission of the token ends
}

// SignIn is a program that asks to sign in by OAuth.
type SignIn struct {
	Handle   string   `json:"handle"`            // which its browser shows, too
	Client   string   `json:"client"`            // as it calls itself
	Host     string   `json:"returns_to"`        // where the browser is sent with the answer
	Local    bool     `json:"local,omitzero"`    // that is the computer of the browser
	Asks     []string `json:"asks"`              // words of permissions, such as read and set
	From     string   `json:"from"`              // the network of the browser
	Replaces string   `json:"replaces,omitzero"` // the name of the token that the same program has
	Left     float64  `json:"seconds_left"`
}

// NewSignIn is the parameters of SignInAct.
type NewSignIn struct {
	Handle string `json:"handle"`
	Name   string `json:"name"`  // of its token
	Grant  []byte `json:"grant"` // its audience is the site
}

// Request is a call that waits for an owner's approval.
type Request struct {
	Handle string         `json:"handle"`
	Who    string         `json:"who"`
	Tool   string         `json:"tool"`
	Args   jsontext.Value `json:"arguments"`
	Via    []string       `json:"via,omitzero"`
	Left   float64        `json:"seconds_left"`
	Holds  float64        `json:"would_hold_seconds,omitzero"` // a move, now, within all limits
}

// AccessParams are the parameters of AccessAct.
type AccessParams struct {
	Challenge []byte `json:"challenge,omitzero"` // 32 random bytes, for the site to prove its key
}

// Access answers AccessAct.
type Access struct {
	Site string    `json:"site"` // its did:key
	Name string    `json:"name"`
	At   []string  `json:"addresses"`
	URL  string    `json:"url"`
	Time time.Time `json:"time"`
	Sure bool      `json:"time_is_known"` // false: the time is a guess
	// Off is the seconds by which a machine's clock that is not trusted is ahead of the site's time.
	Off       float64   `json:"machine_ahead_seconds,omitzero"`
	LastKnown bool      `json:"last_known,omitzero"` // the time is used although it is not known
	Owners    []Owner   `json:"owners"`
	Grants    []Granted `json:"grants"`
	Proof     []byte    `json:"proof,omitzero"` // of the key, where there was a challenge
}

// Owner is a key with authority over the site.
type Owner struct {
	DID  string `json:"did"`
	Name string `json:"name,omitzero"`
}

// Granted is a grant, or a token that stands for one.
type Granted struct {
	ID    string `json:"id"`
	Token string `json:"token,omitzero"` // its name
	// Client and Host are those of a program that signed in by OAuth: what it calls itself, and where its
	// user was sent back.
	Client string `json:"client,omitzero"`
	Host   string `json:"returns_to,omitzero"`
	Former string `json:"former_url,omitzero"` // the URL at which it signed in, where that is not the present one
	To     string `json:"to,omitzero"`         // without a token: the key of its holder
	Name   string `json:"name,omitzero"`       // what the owner calls that holder
	// Who identifies the bearer of a token. Called is the age of its last call in seconds, 0 without one since the start.
	Who    string    `json:"who,omitzero"`
	Called float64   `json:"called_seconds_ago,omitzero"`
	May    []string  `json:"may"` // one for each delegation; all have to allow a call
	Until  time.Time `json:"until,omitzero"`
}

// NewToken is the parameters of TokenAct.
type NewToken struct {
	Name  string    `json:"name"`
	Grant []byte    `json:"grant"` // its audience is the site
	Until time.Time `json:"until"`
	// Replace gives the token of that name another grant. Its secret and its principal stay.
	Replace bool `json:"replace,omitzero"`
}

// MadeToken answers TokenAct.
type MadeToken struct {
	ID    string    `json:"id"`    // of its grant
	Token string    `json:"token"` // the secret; it is shown this once, and not where the grant was replaced
	Until time.Time `json:"until"`
	Owner string    `json:"new_owner,omitzero"` // the signer, where signing made it the first owner
}

// Signed is the parameters of GrantAct and PresentAct.
type Signed struct {
	Grant []byte `json:"grant"`
	// Replace, of GrantAct, ends what the same keys passed on to the same audience before.
	Replace bool `json:"replace,omitzero"`
}

// Reached answers PresentAct and TimeAct: where the site may be reached now, which
// only callers with a permission learn.
type Reached struct {
	At []string `json:"at,omitzero"`
}

// PhoneKey answers PhoneAct: the key of the phone, which has no permission by that.
type PhoneKey struct {
	DID  string `json:"did"`
	Name string `json:"name,omitzero"` // one that would do for it
}

// TimeNow is the parameters of TimeAct.
type TimeNow struct {
	Now  time.Time `json:"now"`
	Set  bool      `json:"set,omitzero"`  // the owner says so; otherwise it counts within the bounds of network time
	Back bool      `json:"back,omitzero"` // and also backwards: for an owner on the site's own machine
}

// MadeRecovery answers RecoveryAct.
type MadeRecovery struct {
	Code string `json:"code"` // it is shown this once
}

// Recovery is the parameters of RecoverAct and ReclaimAct.
type Recovery struct {
	Code string `json:"code"`
	DID  string `json:"did,omitzero"` // of RecoverAct: the key that becomes the only owner
}

// Routes answers RoutesAct.
type Routes struct {
	Carriers []Carrier `json:"carriers"`
	Methods  []string  `json:"methods"` // of all carriers
}

// Carrier is something that listens.
type Carrier struct {
	Kind    string   `json:"kind"`
	Address string   `json:"address"`         // a URL without a path, or a socket's file
	Routes  []string `json:"routes,omitzero"` // over HTTP: "GET /healthz", or "/mcp" for every verb; over libp2p: protocols
	Public  []string `json:"public,omitzero"` // those of Routes that answer everybody
}

// The kinds of carriers.
const (
	HTTPCarrier   = "http"
	HTTPSCarrier  = "https"
	OwnerCarrier  = "owner socket"
	AgentsCarrier = "agents socket"
	P2PCarrier    = "libp2p"
	PublicCarrier = "public name"
)

// PublicState answers PublicAct. Times are zero where there is none.
type PublicState struct {
	URL         string        `json:"url,omitzero"`         // for clients; "" while the site has no public name
	Local       bool          `json:"local,omitzero"`       // there is no public name: the URL is that of http: oauth
	Target      string        `json:"cname,omitzero"`       // what the DNS has the owner's own name point to
	CAA         string        `json:"caa,omitzero"`         // a record by which no other account gets a certificate
	Certificate string        `json:"certificate,omitzero"` // the name that the certificate is for
	Until       time.Time     `json:"until,omitzero"`       // its end
	Next        time.Time     `json:"next_order,omitzero"`  // when it is renewed, or ordered again
	Orders      int           `json:"orders_of_week,omitzero"`
	Relays      []PublicRelay `json:"relays,omitzero"`
	LogRead     time.Time     `json:"log_read,omitzero"` // when the log of certificates was last read
	LogErr      string        `json:"log_error,omitzero"`
	SignIns     []PublicStep  `json:"sign_ins,omitzero"` // the last ones of programs that sign in, the oldest first
	Problems    []string      `json:"problems,omitzero"` // what is wrong, and what to do
	Alarms      []string      `json:"alarms,omitzero"`   // certificates of others for the name
}

// LookAtPublic is the parameters of PublicAct.
type LookAtPublic struct {
	Look bool `json:"look,omitzero"` // whether the name is called from outside, which takes up to half a minute
}

// PublicRelay is a relay, and why it brings no callers; "" where it does.
type PublicRelay struct {
	Relay string       `json:"relay"`
	Why   string       `json:"why,omitzero"`
	Steps []PublicStep `json:"steps,omitzero"` // of a call of the name through it
}

// PublicStep is a step of a call of the public name, or of a program that signs in there.
type PublicStep struct {
	Step string  `json:"step"` // the path, of a program
	MS   float64 `json:"ms,omitzero"`
	Err  string  `json:"error,omitzero"` // "" for a good one
	Do   string  `json:"do,omitzero"`    // the remedy

	At     time.Time `json:"at,omitzero"` // of a program; as the next
	From   string    `json:"from,omitzero"`
	Client string    `json:"client,omitzero"` // as it calls itself
}

// Health answers HealthAct.
type Health struct {
	Configuration string `json:"configuration,omitzero"` // its absolute path; "" for the demonstration
}

// Wanted is the parameters of FindAct.
type Wanted struct {
	Capability string `json:"capability,omitzero"` // "" for all that the site knows already, without asking anybody
}

// foundAll answers FindAct.
type foundAll struct {
	Found []Found `json:"found"`
}

// Found is another site, as it announces itself.
type Found struct {
	Name   string   `json:"name"`
	DID    string   `json:"did"`
	URLs   []string `json:"urls"`
	Public []Public `json:"public,omitzero"`
}

// Announces reports whether the site announces to everybody that it has something of a kind.
func (f *Found) Announces(kind, name string) bool {
	return slices.ContainsFunc(f.Public, func(k Public) bool { return k.Kind == kind && slices.Contains(k.Points, name) })
}

// Public are the points of one kind that a site announces to everybody.
type Public struct {
	Kind   string   `json:"Kind"`
	Points []string `json:"Points"`
}
