package state

import "fmt"

// Check says what is wrong with the state, nil when all lists, indexes and
// counts agree. It looks at everything.
func (s *State) Check() error {
	c := &checker{State: s}
	if err := c.checkTables(); err != nil {
		return err
	}
	return s.checkIndexes()
}

// A checker follows every reference of the tables. It trusts none: the first
// that leads nowhere, to a free entry, or a second time to the same entry ends
// the check.
type checker struct {
	*State
	err   error
	loads bool // the state is to learn from the tables what it knows of all jobs
	loading

	listed  []bool // jobs that were met in a list or tree
	planted bool   // the trees of delayed jobs were found right
	extra   []bool // extras that a job names
	level   []bool // levels that a queue names
	setting []bool
	grouped []bool // groups that were met in a queue's chain
	free    struct{ jobs, queues, extras, levels, groups, claims, reasons, policies, settings []bool }

	groupRefs, reasonRefs, policyRefs, reasonsOf, claimsOf, claimRefs []uint32
	sums                                                              []queueCounts
}

// queueCounts are what the jobs of a queue add up to.
type queueCounts struct {
	in    [5]uint32
	bytes uint64
}

func (c *checker) fail(format string, args ...any) bool {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return false
}

// checkTables checks all that the tables say of each other.
func (c *checker) checkTables() error {
	for _, step := range []func() bool{
		c.checkRoot, c.checkFree, c.checkJobs, c.load, c.checkClaims, c.checkGroups, c.checkShared,
		c.checkQueues, c.checkAllListed, c.checkIdle, c.checkCrons, c.packFree,
	} {
		if !step() {
			return c.err
		}
	}
	return nil
}

func (c *checker) checkRoot() bool {
	return c.now >= 0 && c.now <= MaxMillis && c.offset >= -MaxMillis && c.offset <= MaxMillis ||
		c.fail("log time %d, offset %d", c.now, c.offset)
}
