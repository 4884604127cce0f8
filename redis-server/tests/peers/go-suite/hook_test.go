// Stands beside go-redis' own tests: where the server is, and what became of each test, a line each.
package redis_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/bsm/ginkgo/v2"
)

var (
	serverPort     = os.Getenv("SERVER_PORT")
	serverProtocol = int(os.Getenv("SERVER_PROTOCOL")[0] - '0')
)

// The suite is told of a managed server (RE_CLUSTER), for which it expects no ring, no sentinels and no cluster. Its tests
// ask again, and shall hold for a server like any other.
var _ = BeforeEach(func() { RECluster = false })

var _ = ReportAfterEach(func(report SpecReport) {
	message := strings.Join(strings.Fields(report.FailureMessage()), " ")
	fmt.Printf("\n%s\t%s\t%s\n", report.State, report.FullText(), message)
})
