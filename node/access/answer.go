package access

import "agentsite/node/identity"

const sitePurpose identity.Purpose = "site"

// ProveSite answers a challenge: only the site with that key can.
func ProveSite(key identity.Key, challenge []byte) []byte { return key.Sign(sitePurpose, challenge) }

// VerifySite reports whether proof is what the site's ProveSite made of the challenge.
func VerifySite(site identity.ID, challenge, proof []byte) bool {
	return site.Verify(sitePurpose, challenge, proof)
}
