"""Names of MediaWiki's namespace for categories, in the languages of Wikipedia."""

from __future__ import annotations

# Casefolded names from the site information that the wikis publish (action=query&meta=siteinfo), for pages without a
# dump: a dump names its own namespaces. Words with which titles begin, such as "class", are left out.
_ONE_WORD = """
    abdeeling adà bekätakthook bhângsa bólkur catadorie catagóir categoreye categori categoria categorie
    category categorìa categoría categorîa categuria categurìa catigurìa catègorie catégorie dalala
    flocc flokkur ikiciro kaarangay kadegorie kakuniza kalasi karolo kasasiwasiw kateggoría kategooria
    kategoreja kategori kategoria kategorie kategorii kategoriija kategorija kategorio kategoriya
    kategoriye kategoriýa kategory kategorya kategoryjo kategoría kategorî kategourii kateguorėjė
    kategòrëjô kategória katejori kateqoriya katigori katigoria katiguriya kattegerie kattejori katégori
    katõgooria katēggoría kaurian klass luokka lūi-pia̍t māhele neneuhcāyōtl nkyekyem nkyekyεmu
    pinapapilipiliqan roinn-seòrsa ronney rummad saachjrop saachjropp saachjrupp sachgrubb sachjrop
    setensele snakun sokajy taggayt tipanictawin tumbung turkum törkem umuce vibhag wàll ébéonọr
    ñemohenda òtù κατηγορία κατηγορίαν акатегориа ангилал аңгылал гурӯҳ кадегар категори категорие
    категорий категориэ категория категорија категорія катеґорія катигорїꙗ катигорї катэгорыя оагӏат
    санат тоба төркем төркөм янз әәшл կատեգորիա ստորոգութիւն קאַטעגאָריע קאטעגאריע קט קטגוריה بؤلمه
    تصنيف تۈر جرگه رج رده زمرو زمرہ زٲژ سانات ونکی وېشنيزه پۆل گٹھ ܣܕܪܐ ޤިސްމު ߦߌߟߡߊ पुचः वर्ग वर्गः
    विभाग श्र श्रेणी থাক বিষয়শ্রেণী শ্রেণী শ্ৰেণী ਸ਼੍ਰੇਣੀ શ્રે શ્રેણી ବିଭାଗ ଶ୍ରେଣୀ பகுப்பு వర్గం ವರ್ಗ
    ವರ್ಗೊ വി വിഭാഗം വർഗ്ഗം ප්‍රවර්ගය หมวดหมู่ ໝວດ ကဏ္ဍ ပိူင်ထၢၼ်ႈ კატეგორია መደብ ចំណាត់ក្រុម
    ចំណាត់ថ្នាក់ក្រុម ចំនាត់ថ្នាក់ក្រុម ᱛᱷᱚᱠ ẹ̀ka 分类 分類 ꯃꯆꯥꯈꯥꯏꯕ 분류 カテゴリ 𐌷𐌰𐌽𐍃𐌰
"""
CATEGORY = frozenset(_ONE_WORD.split()) | {"sumut atassuseq", "thể loại", "tʼááłáhági átʼéego", "zyuwaw na"}
