package homepage

import (
	"context"

	"agentsite/device"
	"agentsite/transport/rpc"

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

const claimMethod = "board/claim"

// boardMethods are the methods of sites that nobody owns, for the page.
func (h *Home) boardMethods() map[string]rpc.Method {
	return map[string]rpc.Method{"board/list": method(h.listBoards), claimMethod: method(h.claim)}
}

func (h *Home) listBoards(ctx context.Context, _ *rpc.Call, _ none) (any, error) {
	all, err := h.options.Boards.Near(ctx)
	return map[string]any{"boards": all}, err
}

// claimParams are a site that Near found, "" for any, and what a person copied from it.
type claimParams struct {
	DID   string `json:"did"`
	Words string `json:"words"`
}

// claim claims a site, once the person confirmed it.
func (h *Home) claim(ctx context.Context, c *rpc.Call, p claimParams) (any, error) {
	address, key, err := h.options.Boards.Address(p.DID, p.Words)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "%w", err)
	}
	params, err := json.Marshal(map[string]string{"address": address})
	if err != nil {
		return nil, err
	}
	err = h.confirm(ctx, c, Act{
		Site: key, Key: key, Method: claimMethod, Description: "Become the owner of the site with this address.", Params: params,
	})
	if err != nil {
		return nil, err
	}
	// A page that leaves must not leave the user with a site that nothing here knows, and without a recovery code.
	name, err := h.options.Boards.Claim(context.WithoutCancel(ctx), address)
	return map[string]any{"name": name}, err
}
