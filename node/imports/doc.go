// Package imports stores the agents that came to a site as bundles. Drafts are inert and have no
// permission. Agents that an owner accepted are run by node/hosted beside those of the
// configuration.
package imports
