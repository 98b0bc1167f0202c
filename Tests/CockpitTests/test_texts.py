#!/usr/bin/python3
"""The texts of the page for Cockpit, without a browser."""

import pathlib, re, unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging/cockpit"


class TextTest(unittest.TestCase):
    def test_every_text_has_a_translation_and_every_translation_a_text(self):
        texts = set(re.findall(r'translate="yes">([^<]+)<', (FOLDER / "index.html").read_text()))
        for file in FOLDER.glob("*.js"):
            texts.update(re.findall(r'\b_\("((?:[^"\\]|\\.)*)"', file.read_text()))
        translations = set(re.findall(r'^msgid "(.+)"$', (FOLDER / "de.po").read_text(), re.MULTILINE))
        self.assertEqual(texts, translations)
        self.assertNotIn('msgstr ""', (FOLDER / "de.po").read_text().split("\n\n", 1)[1])

    def test_nothing_is_inline_and_nothing_becomes_markup(self):
        page = (FOLDER / "index.html").read_text()
        self.assertIsNone(re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! [^>]*src=)", page))
        for file in FOLDER.glob("*.js"):
            forbidden = r"innerHTML|outerHTML|insertAdjacent|\beval\b|document\.write"
            self.assertIsNone(re.search(forbidden, file.read_text()), file)


if __name__ == "__main__":
    unittest.main(verbosity=2)
