package homepage

import (
	"context"
	"net/http"

	"agentsite/device"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Board is a site on the user's network that nobody owns. Any site can use any name.
type Board struct {
	Name string `json:"name"`
	DID  string `json:"did"`
}

// Boards finds sites that nobody owns, and makes the user the owner of one.
type Boards interface {
	Near(context.Context) ([]Board, error)
	// Address returns the whole address to claim a site by, and its key, of the words that a person copied from
	// it. did is that of a site which Near found, or "".
	Address(did, words string) (address, key string, err error)
	// Claim returns the user's name for the site.
	Claim(ctx context.Context, address string) (name string, err error)
}

// claimAct names a claim to the person who confirms it.
const claimAct = "claim"

func (h *Home) near(w http.ResponseWriter, r *http.Request, _ web.Caller) {
	all, err := h.options.Boards.Near(r.Context())
	answer(w, struct {
		Boards []Board `json:"boards"`
	}{all}, err)
}

// claim claims a site, once the person allowed it.
func (h *Home) claim(w http.ResponseWriter, r *http.Request, c web.Caller) {
	body, done := c.ReadBody(w, r)
	if body == nil {
		return
	}
	defer done()
	var asked struct {
		DID   string `json:"did"`
		Words string `json:"words"`
	}
	if r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body.Bytes(), &asked) != nil {
		web.RefuseRPC(w, http.StatusBadRequest, `a claim is {"did": "…", "words": "…"} as application/json`)
		return
	}
	var claimed struct {
		Name string `json:"name"`
	}
	address, key, err := h.options.Boards.Address(asked.DID, asked.Words)
	if err != nil {
		err = device.Faultf(device.Invalid, "%w", err)
	}
	if err == nil {
		params, _ := json.Marshal(map[string]string{"address": address})
		err = h.options.Confirm(r.Context(), Act{
			Site: key, Method: claimAct, Description: "Become the owner of the site with this address.", Params: params,
		})
	}
	if err == nil {
		claimed.Name, err = h.options.Boards.Claim(r.Context(), address)
	}
	answer(w, claimed, err)
}

// answer answers the page as a call is answered: with a result or an error.
func answer(w http.ResponseWriter, result any, err error) {
	says := map[string]any{"result": result}
	if err != nil {
		says = map[string]any{"error": refusal(err)}
	}
	text, err := json.Marshal(says)
	if err != nil {
		web.RefuseRPC(w, http.StatusInternalServerError, "the answer has no form in JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(append(text, '\n'))
}
