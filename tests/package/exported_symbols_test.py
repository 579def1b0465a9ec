"""What exported_symbols.py finds wrong, on texts that are known."""
import unittest

import exported_symbols as checked

HEADER = """
/* TACC_API int taccOfAComment(void); */
#define TACC_MAJOR 1
#define TACC_MINOR 2
#define TACC_PATCH 3
#define TACC_API __attribute__((visibility("default")))
TACC_API taccResult_t taccOne(int* version);
TACC_API const char* taccTwo(
    taccResult_t result); // TACC_API int taccOfAnotherComment(void);
TACC_API taccResult_t
taccThree(void);
static inline int taccInHeader(void) { return 0; }
"""
NM = """0000000000012340 T taccOne
0000000000012350 T taccTwo@@TACC_1
"""
READELF = " 0x000000000000000e (SONAME)             Library soname: [libtacc.so.1]\n"


class ExportedSymbolsTest(unittest.TestCase):
    def test_functions_of_headers(self):
        self.assertEqual(checked.declared(HEADER), {"taccOne", "taccTwo", "taccThree"})

    def test_a_declared_function_that_is_missing(self):
        wrong = checked.wrong_symbols(checked.declared(HEADER), checked.exported(NM))
        self.assertEqual([line.split()[0] for line in wrong], ["taccThree"])

    def test_symbols_that_no_header_declares(self):
        shown = checked.exported(NM + "0000000000001000 W _ZNSt6vectorIiE4pushEv\n" + "0000000000002000 T taccThree\n"
                                 + "0000000000003000 B taccCounter\n")
        wrong = checked.wrong_symbols(checked.declared(HEADER), shown)
        self.assertEqual([line.split()[3].rstrip(",") for line in wrong], ["_ZNSt6vectorIiE4pushEv", "taccCounter"])

    def test_version(self):
        self.assertEqual(list(checked.wrong_version(READELF, "1.2.3", {"tacc.h": HEADER, "more.h": ""})), [])
        self.assertIn("tacc.h says version 1.2.3", "".join(checked.wrong_version(READELF, "1.3.0", {"tacc.h": HEADER})))
        self.assertIn("itself libtacc.so.1", "".join(checked.wrong_version(READELF, "2.0.0", {"tacc.h": HEADER})))
        self.assertIn("itself nothing", "".join(checked.wrong_version("", "1.2.3", {"tacc.h": HEADER})))
        self.assertIn("no header defines", "".join(checked.wrong_version(READELF, "1.2.3", {"more.h": ""})))


if __name__ == "__main__":
    unittest.main()
