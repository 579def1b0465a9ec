/// tacc_bench: times a collective of tacc, or its convolutions, products of matrices and other layers (tacc_bench conv,
/// gemm, layers) or training exchanges (tacc_bench easgd), and other libraries beside it. See --help.

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

#include "compute/conv_bench.hpp"
#include "compute/gemm_bench.hpp"
#include "compute/layer_bench.hpp"
#include "contestants/local_ranks.hpp"
#include "coordinator/options.hpp"
#include "coordinator/session.hpp"
#include "coordinator/venue.hpp"
#include "easgd/easgd_bench.hpp"
#include "launched/job_session.hpp"
#include "support/interrupt.hpp"
#include "support/output.hpp"

int main(int argc, char** argv) {
  using namespace tacc::bench;
  // How this program starts ranks of its own; not for users.
  if (argc > 1 && std::string_view(argv[1]) == "--worker") return runLocalRanks(argc - 2, argv + 2);
  tacc::tools::requireStandardOutput("tacc_bench");
  try {
    if (argc > 1 && std::string_view(argv[1]) == "conv") return runConvBench(argc - 1, argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "gemm") return runGemmBench(argc - 1, argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "easgd") return runEasgdBench(argc - 1, argv + 1);
    if (argc > 1 && std::string_view(argv[1]) == "layers") return runLayerBench(argc - 1, argv + 1);
    const std::optional<Job> job = findJob();
    const Options options = parseOptions(argc, argv, job);
    if (job) return runJobSession(options);
    tacc::tools::catchInterrupts();
    OwnVenue venue(options);
    return runSession(options, venue) ? 0 : 1;
  } catch (const tacc::tools::Interrupted& interrupt) {
    std::fprintf(stderr, "tacc_bench: interrupted\n");
    return 128 + interrupt.signal();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tacc_bench: %s\n", error.what());
    return 1;
  }
}
