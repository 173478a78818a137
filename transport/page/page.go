package page

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentsite/agents/principal"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Site is a site that the page shows.
type Site struct {
	Name  string `json:"name"`
	URL   string `json:"url"`            // of its MCP, from the page
	Key   string `json:"key,omitzero"`   // its did:key, which the connection proves; "" where that is not known
	Owner bool   `json:"owner,omitzero"` // the owner's methods answer there
	You   string `json:"you,omitzero"`   // the principal of the session there, if that is another one
}

// Page is the page of one program, with its sessions.
type Page struct {
	who   principal.Principal
	sites func() []Site

	// Home is the path of the methods of a home page, which knows many sites; "" on the page of one site. It is
	// set before Routes.
	Home string

	sessions sessions
	phones   *phones // nil without AddPhones
	answers  *Answers
}

// New makes a page. Each of its sessions calls as who, on the sites that sites returns.
func New(who principal.Principal, sites func() []Site) *Page {
	return &Page{who: who, sites: sites}
}

// Link makes a link to the page at a URL that begins a session, once and within the time. The key is in the
// fragment, which browsers send to nobody.
func (p *Page) Link(base string, valid time.Duration) string {
	return base + "/#k=" + p.sessions.link(valid)
}

// Callers returns the sessions as callers, and others beside them.
func (p *Page) Callers(others web.Callers) web.Callers { return callers{p, others} }

// Close ends all sessions, with their running requests, and all links.
func (p *Page) Close() { p.sessions.close() }

// Bind returns the route with the requests of a session ending with it.
func (p *Page) Bind(route web.Route) web.Route {
	serve := route.Serve
	route.Serve = func(w http.ResponseWriter, r *http.Request, c web.Caller) {
		ctx, done := p.sessions.bind(r.Context(), web.Bearer(r))
		defer done()
		serve(w, r.WithContext(ctx), c)
	}
	return route
}

const sessionPath = "/page/session"

// Routes returns the document, its files and the sessions. What is public tells nothing of any site.
func (p *Page) Routes() []web.Route {
	all := []web.Route{
		{Pattern: "POST " + sessionPath, Admission: web.Public, Serve: p.begin},
		{Pattern: "GET " + sessionPath, Admission: web.Principals, Serve: p.show},
		{Pattern: "DELETE " + sessionPath + "/{number}", Admission: web.Principals, Serve: p.end},
	}
	return append(slices.Concat(all, p.phoneRoutes(), p.pushRoutes()), fileRoutes(readFiles(dist, "dist", policy))...)
}

// BehindRoutes returns the routes of the page behind a proxy, in whose own pages it is shown and which says who calls:
// the document, its files, and what a caller is told of itself. Links, sessions and keys of browsers are not for it:
// they would be in reach of the proxy's other pages.
func (p *Page) BehindRoutes() []web.Route {
	return append([]web.Route{{Pattern: "GET " + sessionPath, Admission: web.Principals, Serve: p.show}},
		fileRoutes(readFiles(dist, "dist", framed))...)
}

// told is what a session is told of itself.
type told struct {
	Token    string   `json:"token,omitzero"` // only when it begins
	You      string   `json:"you"`
	Sites    []Site   `json:"sites"`
	Sessions []listed `json:"sessions,omitzero"`
	Home     string   `json:"home,omitzero"`
	Answers  bool     `json:"answers,omitzero"` // its key answers calls that wait for an owner
}

// begin takes the key of a link and begins a session.
func (p *Page) begin(w http.ResponseWriter, r *http.Request, c web.Caller) {
	body, done := c.ReadBody(w, r)
	if body == nil {
		return
	}
	defer done()
	var link struct {
		Key string `json:"key"`
	}
	if r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body.Bytes(), &link) != nil {
		web.RefuseRPC(w, http.StatusBadRequest, `a session begins with {"key": "…"} as application/json`)
		return
	}
	token, ok := p.sessions.begin(link.Key, r.UserAgent())
	if !ok {
		web.RefuseRPC(w, http.StatusUnauthorized, "this link was used, or is too old: agentsite open prints a new one")
		return
	}
	p.tell(w, p.who, token, p.sessions.use(token))
}

// show tells a caller who it is, after a reload of its document. A token of another kind has no session.
func (p *Page) show(w http.ResponseWriter, r *http.Request, c web.Caller) {
	p.tell(w, c.Who, "", p.sessions.use(web.Bearer(r)))
}

// tell answers a caller. Others see the sessions only from a session.
func (p *Page) tell(w http.ResponseWriter, who principal.Principal, token string, own *session) {
	t := told{Token: token, You: who.ID, Sites: p.sites(), Home: p.Home, Answers: p.answers != nil && p.answers.May(who)}
	if own != nil {
		t.Sessions = p.sessions.list(own)
	}
	writeJSON(w, t)
}

// writeJSON answers with v, which no cache keeps.
func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		web.RefuseRPC(w, http.StatusInternalServerError, "the answer has no form in JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(append(text, '\n'))
}

// end ends a session, the caller's own or another that it sees.
func (p *Page) end(w http.ResponseWriter, r *http.Request, c web.Caller) {
	number, _ := strconv.Atoi(r.PathValue("number"))
	own := p.sessions.use(web.Bearer(r))
	switch {
	case own == nil && !c.Who.Owner:
		web.RefuseRPC(w, http.StatusForbidden, "a session is ended from a session, or by an owner")
	case !p.sessions.end(number, own):
		web.RefuseRPC(w, http.StatusNotFound, "there is no such session")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
